"""What a script can notice when a hook that comes late searches its process."""

import json
import subprocess
import sys
from pathlib import Path

AGENTS = Path(__file__).parents[2]
SCRIPT = f"""
import gc, json, sys
sys.path.insert(0, {str(AGENTS)!r})
from tfmemtop.agent.collector import Collector
from tfmemtop.agent.joining import earlier

heard = []
sys.addaudithook(lambda event, _: heard.append(event))
gc.disable()  # as the hook does then
earlier(Collector())
print(json.dumps(heard))
"""


def test_an_audit_hook_hears_of_one_look_and_not_of_each_object() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    assert json.loads(done.stdout) == ["gc.get_objects"]
