"""Programs for the Python of a process that the hook is to be put into."""

ASK = """
import sys
if not hasattr(sys, "remote_exec"):
    print("old " + ".".join(map(str, sys.version_info[:3])))
else:
    try:
        sys.remote_exec(int(sys.argv[1]), sys.argv[2])
        print("asked")
    except Exception as error:
        while error.__cause__ or error.__context__:
            error = error.__cause__ or error.__context__
        print(type(error).__name__ + ": " + str(error))
"""
"""The program of the helper, which runs in the target's own interpreter. It asks the target to run a file."""

REPLACED = "replaced "
"""The beginning of what a process writes if Python's function that starts threads was replaced in it.

The name of the function follows.
"""

SCRIPT = """\
# tfmemtop has put this file here, to be run once by process {pid}; it deletes itself.
import _thread

def fail(here, text):
    try:
        with open(here + ".failed", "w") as file:
            file.write(text)
    except Exception:
        pass

def begin(main, told, here):
    try:
        import _signal
        import os
        keep = {{_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL, _signal.SIGABRT}}
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals() - keep)
        with open({hook!r}, "rb") as file:
            code = compile(file.read(), "<tfmemtop sitecustomize.py>", "exec")
        exec(code, {{"__name__": "tfmemtop_hook", "__file__": {hook!r}, "_joined": (told, main)}})
    except BaseException as error:
        fail(here, type(error).__name__ + ": " + str(error))
    finally:
        try:
            os.unlink(here)
            os.rmdir(os.path.dirname(here))
        except OSError:
            pass  # the engine has deleted it, or deletes the folder when it has read what went wrong

if type(_thread.start_new_thread) is not type(len):
    fail({here!r}, "{replaced}_thread.start_new_thread")  # gevent's would run it in this thread
else:
    try:
        _thread.start_new_thread(begin, (_thread.get_ident(), {told!r}, {here!r}))
    except KeyboardInterrupt:
        _thread.interrupt_main()
    except Exception as error:
        fail({here!r}, type(error).__name__ + ": " + str(error))
"""
"""The file that the target itself runs. It starts a thread, and ends. ``format`` fills it in."""
