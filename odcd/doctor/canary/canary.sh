#!/bin/sh
# One of the two programs runs, with the arguments of this script.
if command -v python3 >/dev/null 2>&1; then
    exec python3 -c "$(cat <<'END_OF_PYTHON'
@PYTHON@
END_OF_PYTHON
)" "$@"
fi
if command -v perl >/dev/null 2>&1; then
    exec perl -e "$(cat <<'END_OF_PERL'
@PERL@
END_OF_PERL
)" -- "$@"
fi
echo 'odc: the image has neither python3 nor perl' | tee /dev/termination-log
exit 3
