"""The programs of the steps of run --sync, for any POSIX shell.

Their first two arguments are the beginning of the name of the job's folder, and the attempt; see
odcd.slurm.sync_script for the files in it.
"""

from __future__ import annotations

DATA = "data"
COMPLETE = "complete"
"""The last member of the archive: a stream that breaks off does not have it."""
LAST = "code"
"""The last member of the results."""
NO_FOLDER, NOT_UNPACKED, NOT_WHOLE, NOT_FETCHED, NOT_READ = 3, 4, 5, 8, 9
"""Exit codes: the job has no such folder; tar could not unpack the files, or they were not all;
the client did not take the results, or not all of them could be read."""

_NAP = "nap() { sleep 0.2 2>/dev/null || sleep 1; }\none=$1-$2-$ODC_RANK\n"
RECEIVE = f"""\
{_NAP}began=$(date +%s)
until [ -d "$one" ]; do
  [ $(($(date +%s) - began)) -lt 60 ] || exit {NO_FOLDER}
  nap
done
cd "$one" || exit {NO_FOLDER}
[ ! -e ready ] && [ ! -e "$3" ] || exit 0
trap 'rm -f receiving' EXIT
trap 'exit 143' TERM
: >receiving
rm -rf {DATA} {COMPLETE}
tar -xof - || exit {NOT_UNPACKED}
[ -e {COMPLETE} ] || exit {NOT_WHOLE}
rm {COMPLETE}
: >"$3"
"""
"""Its third argument is the file that shows that all have arrived: ready for a job of one node,
arrived for several."""
BEGIN = f"""\
{_NAP}cd "$one" || exit {NO_FOLDER}
[ -e ready ] || mv arrived ready
"""
"""On all nodes, when all have the files."""
RESULTS = f"""\
{_NAP}trap '' TERM
until [ -e "$one/code" ]; do
  [ -d "$one" ] || exit {NO_FOLDER}
  nap
done
cd "$one/{DATA}" || exit {NO_FOLDER}
newer=-cnewer
find . -prune -cnewer ../ready >/dev/null 2>&1 || newer=-newer
end=0
find . \\( -name .git -o -name __pycache__ \\) -prune -o \\
  \\( -type f -o -type l \\) $newer ../ready -exec tar -cf - {{}} + </dev/null || end={NOT_READ}
cd .. && tar -cf - {LAST}
read -r answer || exit {NOT_FETCHED}
: >fetched
exit $end
"""
"""Print archives of the files that were created or changed, one after the other, and one with the
file LAST. Its input is a line when the client has them all."""
