"""Exit codes as shells have them."""

import signal

SIGNALLED = 128
"""A program that signal n ended counts as exit code 128+n."""

INTERRUPTED = SIGNALLED + signal.SIGINT
