"""odcctl completion: what makes a shell complete odcctl's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from odcctl.caller import me
from odcctl.commands import VERBS, load
from odcctl.commands._submitting import SubmitCommand
from odcctl.exits import DONE, Failure
from odcctl.http.client import Client
from odcctl.http.wire import LostAnswer
from odcctl.options import Arguments, Command
from odcctl.reservation_states import STATUSES
from odcctl.text import jobs, render

ASK_TIMEOUT_S = 1.0
MAX_JOBS = 200
DISK_ACTIONS = ("list", "create", "delete", "rename", "list-content", "clone", "unlock", "strays")

BASH = """\
# In ~/.bashrc:  eval "$(odcctl completion bash)"
_odcctl() {
    local IFS=$'\\n'
    COMPREPLY=($(odcctl completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o bashdefault -o default -F _odcctl odcctl
"""
ZSH = """\
# In ~/.zshrc, after compinit:  eval "$(odcctl completion zsh)"
_odcctl() {
    local -a found
    found=("${(@f)$(odcctl completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found/$'\\t'/:}")
    if [[ -n "$found" ]]; then _describe odcctl found; else _files; fi
}
compdef _odcctl odcctl
"""
FISH = """\
# In ~/.config/fish/config.fish:  odcctl completion fish | source
function __odcctl_words
    set -l words (commandline -opc) (commandline -ct)
    odcctl completion words -- $words[2..-1] 2>/dev/null
end
complete -c odcctl -a '(__odcctl_words)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

Words = Iterable[tuple[str, str]]
"""Words and what they mean."""


def run(arguments: Arguments) -> int:
    shell, *line = arguments.words
    if shell in SCRIPTS and not line:
        render.put(SCRIPTS[shell])
    elif shell == "words":
        partial = line[-1] if line else ""
        for word, meaning in candidates(line, lambda: Client.of(arguments)):
            if word.startswith(partial):
                render.put(f"{word}\t{meaning}\n" if meaning else f"{word}\n")
    else:
        arguments.command.wrong(f'"{" ".join(arguments.words)}" is not bash, zsh or fish')
    return DONE


def candidates(line: Sequence[str], client: Callable[[], Client]) -> Words:
    """Completions of the last word of the line."""
    *before, partial = line or [""]
    verb = next((word for word in before if not word.startswith("-")), None)
    if verb is None:
        return [(name, load(name).summary) for name in VERBS]
    if verb not in VERBS:
        return ()
    command = load(verb)
    if partial.startswith("-"):
        if isinstance(command, SubmitCommand):
            command.ask_options(client(), timeout_s=ASK_TIMEOUT_S)
        return [(f"--{option.long}", option.help) for option in command.all_options]
    if before[-1] in ("-t", "--state") and verb in ("queue", "cancel", "history"):
        return [(state, "") for state in (*jobs.LIVE, *jobs.ENDED)]
    if before[-1] in ("-s", "--status") and verb == "list":
        return [(status, "") for status in STATUSES]
    if verb == "completion" and before[-1] == verb:
        return [(name, "") for name in SCRIPTS]
    if verb == "disk" or (verb == "reserve" and before[-1] == "--disk"):
        return _disk_words(before, client())
    if verb == "node" and before[-1] == verb:
        return [("drain", ""), ("resume", ""), ("down", "")]
    return _live_jobs(client()) if command.takes_jobs else ()


def _disk_words(before: Sequence[str], client: Client) -> Words:
    if before[-1] == "disk":
        return [(action, "") for action in DISK_ACTIONS]
    if before[-1] in ("list", "create", "strays"):
        return ()
    try:
        answer = client.request("GET", "/v1/disks", timeout_s=ASK_TIMEOUT_S).json()
    except (Failure, LostAnswer):
        return ()
    found = [(disk["name"], disk["state"]) for disk in answer["disks"]]
    return [*found, ("none", "no disk")] if before[-1] == "--disk" else found


def _live_jobs(client: Client) -> Words:
    try:
        params = {
            "user": me(client, ASK_TIMEOUT_S),
            "limit": MAX_JOBS,
            "fields": "id,array_job_id,array_task_id,array_tasks,name,state",
        }
        found = client.request("GET", "/v1/jobs", params, timeout_s=ASK_TIMEOUT_S).json()["jobs"]
    except (Failure, LostAnswer):
        return ()
    return [
        (jobs.job_id(job).partition("_[")[0], f"{job['state']} {render.clean(job['name'])}")
        for job in found
    ]


COMMAND = Command(
    name="completion",
    summary="Print what makes bash, zsh or fish complete odcctl's words",
    usage="completion bash|zsh|fish",
    words=(1, None),
    notes=(
        "Completes verbs, options, states, the ids of my jobs and the names of my disks. The first "
        "line of the script says where to put it."
    ),
    example='eval "$(odcctl completion bash)"',
    run=run,
)
