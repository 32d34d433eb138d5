#!/bin/sh
# Stands in for BuildKit's program of this name, in containers of its image: it takes the options that odc gives, looks at the
# files as BuildKit would, tells of its steps in BuildKit's words, runs each RUN by sh in the context's folder (where BuildKit would
# in the image), and writes the metadata. It pushes nothing: a push is noted in the log.
set -eu
fail() { echo "error: $*" >&2; exit 1; }

[ "${1:-}" = build ] || fail "no command \"${1:-}\""
shift
context= dockerfile= metadata= output= filename=Dockerfile platform=
while [ $# -gt 0 ]; do
    case "$1" in
        --progress=plain) shift; continue ;;
        --frontend) [ "$2" = dockerfile.v0 ] || fail "no frontend $2" ;;
        --local)
            case "$2" in
                context=*) context=${2#context=} ;;
                dockerfile=*) dockerfile=${2#dockerfile=} ;;
                *) fail "invalid local $2" ;;
            esac ;;
        --opt)
            case "$2" in
                filename=*) filename=${2#filename=} ;;
                platform=*) platform=${2#platform=} ;;
                *) fail "unknown option $2" ;;
            esac ;;
        --import-cache | --export-cache)
            case "$2" in type=registry,ref=*) ;; *) fail "invalid cache $2" ;; esac ;;
        --output) output=$2 ;;
        --metadata-file) metadata=$2 ;;
        *) fail "flag provided but not defined: $1" ;;
    esac
    shift 2
done
case "$output" in type=image,*name=*,push=true*) ;; *) fail "no image to push: $output" ;; esac
[ "$platform" = linux/amd64 ] || fail "platform $platform"
[ "$(id -u)" = 1000 ] || fail "rootless BuildKit runs as user 1000, not $(id -u)"
[ "$BUILDKITD_FLAGS" = --oci-worker-no-process-sandbox ] || fail "no sandbox without privileges"
[ -d "$context" ] || fail "no folder $context"
[ -z "${DOCKER_CONFIG:-}" ] || [ -r "$DOCKER_CONFIG/config.json" ] || fail "$DOCKER_CONFIG/config.json: not there"
touch /home/user/.local/share/buildkit/lock || fail "its state cannot be kept"

echo "#1 [internal] load build definition from $filename" >&2
file=$dockerfile/$filename
[ -f "$file" ] || fail "failed to solve: failed to read dockerfile: open $filename: no such file or directory"
steps=$(grep -c -E '^(FROM|RUN|COPY) ' "$file") || fail 'failed to solve: dockerfile parse error: file with no instructions'
cd "$context"
at=0
while read -r instruction rest; do
    case "$instruction" in
        FROM | RUN | COPY) ;;
        '' | '#'*) continue ;;
        *) fail "failed to solve: dockerfile parse error on line $((at + 1)): unknown instruction: $instruction" ;;
    esac
    at=$((at + 1))
    echo "#$((at + 4)) [$at/$steps] $instruction $rest" >&2
    if [ "$instruction" = RUN ]; then
        code=0
        sh -c "$rest" </dev/null >&2 || code=$?
        if [ $code != 0 ]; then
            echo "#$((at + 4)) ERROR: process \"/bin/sh -c $rest\" did not complete successfully: exit code: $code" >&2
            fail "failed to solve: process \"/bin/sh -c $rest\" did not complete successfully: exit code: $code"
        fi
    fi
    echo "#$((at + 4)) DONE 0.1s" >&2
done <"$file"
echo "#20 exporting to image" >&2
echo "#20 pushing layers 0.1s done ($output)" >&2
digest=$(cat "$file" | sha256sum)
printf '{\n  "containerimage.config.digest": "sha256:%064d",\n  "containerimage.digest": "sha256:%s"\n}\n' 0 "${digest%% *}" >"$metadata"
