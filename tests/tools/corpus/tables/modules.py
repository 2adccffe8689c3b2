"""Which module is found under which name: PYTHONPATH, sitecustomize, modules with the standard library's names."""

from tests.tools.corpus.script import Script, py, run, sh

_IMPORTS = "import helper; print(helper.where)"
_PATH = "import sys\nprint(sys.path)\n"
_HELPER = {"helper.py": "where = 'cwd'\n", "sub/script.py": _IMPORTS, "lib/helper.py": "where = 'lib'\n"}


def _site(name: str, exercises: str, text: str, source: str = "print('script')\n", **rest: object) -> Script:
    environment = {"PYTHONPATH": "{cwd}/site"}
    return py(f"site-{name}", exercises, source, files={"site/sitecustomize.py": text}, environment=environment, **rest)


def _shadow(name: str) -> Script:
    return py(
        f"shadow-{name}", f"a module {name}.py of its own, in the working folder", f"import {name}\nprint({name}.mine)\n",
        files={f"{name}.py": f"mine = 'my {name}'\nprint('loaded {name}')\n"}, live=name == "signal", quick=name in ("signal", "json"),
    )  # fmt: skip


SCRIPTS: tuple[Script, ...] = (
    *(run(f"path-{name}", f"PYTHONPATH={value!r}", "{python}", "sub/script.py", files=_HELPER, environment={"PYTHONPATH": value},
          live=name in ("empty-first", "relative"), quick=name in ("empty-first", "empty-last"))
      for name, value in {"empty-first": ":/opt/x", "empty-last": "/opt/x:", "empty-middle": "/opt/x::/opt/y", "relative": "lib"}.items()),
    *(py(f"path-shown-{name}", f"sys.path with PYTHONPATH={value!r}", _PATH, environment={"PYTHONPATH": value}, live=name == "odd")
      for name, value in {"none": None, "empty": "", "odd": ":a::{cwd}/b/:./c:"}.items()),
    sh("path-child-appends", "the script lengthens PYTHONPATH for its child", 'PYTHONPATH="$PYTHONPATH:$PWD/lib" python sub/script.py', files=_HELPER),
    sh("path-psutil-of-another", "a psutil that was built for another Python", "sleep 0.2; echo ran; exit 4",
       files={"site/psutil/__init__.py": "raise ImportError('built for another Python')\n"}, environment={"PYTHONPATH": "{cwd}/site"},
       live=True, quick=True),
    sh("path-our-modules-shadowed", "msgspec, textual, rich, pyte of another kind", "echo ran; exit 4",
       files={f"site/{name}.py": "raise ImportError('mine')\n" for name in ("msgspec", "textual", "rich", "pyte", "pynvml", "wcwidth")},
       environment={"PYTHONPATH": "{cwd}/site"}, live=True),
    sh("path-all-shadowed", "PYTHONPATH shadows our dependencies, the standard library and tfmemtop itself; the command is not Python",
       "echo ran; exit 4", environment={"PYTHONPATH": "{cwd}/site"}, quick=True,
       files={f"site/{name}.py": "raise SystemExit('not that one')\n" for name in ("msgspec", "pynvml", "signal", "json", "tempfile", "tfmemtop")}),
    *(_shadow(name) for name in ("signal", "json", "typing", "tensorflow")),
    py("shadow-tensorflow-package", "a package called tensorflow that is none", "import tensorflow, tensorflow.python\nprint(tensorflow.x)\n",
       files={"tensorflow/__init__.py": "x = 'not that one'\n", "tensorflow/python/__init__.py": "print('python')\n"}, quick=True),
    py("shadow-site", "site.py of its own", "print('script')\n", files={"site.py": "print('my site')\n"}),
    _site("prints", "a sitecustomize that prints", "print('from sitecustomize')\n", live=True, quick=True),
    Script(name="site-prints-unbuffered", exercises="the same, unbuffered, before a shell", command=("sh", "-c", "echo ran; exit 5"),
           files={"site/sitecustomize.py": "print('from sitecustomize')\n"},
           environment={"PYTHONPATH": "{cwd}/site", "PYTHONUNBUFFERED": "1"}, live=True, quick=True),
    _site("raises", "one that raises", "raise ValueError('mine')\n", live=True),
    _site("exits", "one that ends the interpreter", "import sys\nprint('no')\nsys.exit(5)\n"),
    Script(name="site-exits-sh", exercises="one that ends every Python, before a shell", command=("sh", "-c", "echo ran"),
           files={"site/sitecustomize.py": "import sys\nsys.exit(5)\n"}, environment={"PYTHONPATH": "{cwd}/site"}, live=True),
    _site("syntax", "one that does not parse", "def (:\n", live=True),
    run("site-user", "a usercustomize in the user's own folder", "sh", "-c",
        "d=$({base} -m site --user-site); mkdir -p $d; echo 'print(\"usercustomize\")' > $d/usercustomize.py; {base} -c 'print(1)'"),
    run("site-pth", "a .pth file with code", "sh", "-c",
        "d=$({base} -m site --user-site); mkdir -p $d; echo 'import sys; print(\"pth\", len(sys.argv))' > $d/x.pth; {base} -c 'print(1)'"),
)  # fmt: skip
