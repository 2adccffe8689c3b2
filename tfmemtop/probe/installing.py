"""How a C++ compiler is installed on this system."""

import shutil


def install_command() -> str:
    """Return the command that installs a compiler on this system."""
    managers = {
        "apt-get": "apt-get install g++",
        "dnf": "dnf install gcc-c++",
        "yum": "yum install gcc-c++",
        "zypper": "zypper install gcc-c++",
        "pacman": "pacman -S gcc",
        "apk": "apk add g++",
        "conda": "conda install -c conda-forge gxx",
    }
    return next((command for manager, command in managers.items() if shutil.which(manager)), "install g++")
