#!/bin/sh
# Runs in the client's container of a build. BuildKit, in the other container, builds the context that is mounted next to this
# program and pushes the image. The digest is left for odcd. Builds differ only in variables, which are never used as code.
set -u
umask 022
context=/scratch/context
mkdir -p "$context" || exit 1
tar -xzf /odc/build/context.tar.gz -C "$context" || exit 1

attributes="name=$ODC_IMAGE,push=true"
cache="type=registry,ref=${ODC_CACHE:-}"
if [ "${ODC_REGISTRY_HTTP:-}" = on ]; then
    attributes="$attributes,registry.insecure=true"
    cache="$cache,registry.insecure=true"
fi
# A shared credential can read the whole repository, with other users' images. So a Dockerfile may not use images from it.
deny='{"action": "DENY", "selector": {"identifier": "docker-image://%s*"}}'
printf "{\"rules\": [$deny, $deny]}" "$ODC_REPOSITORY" "$ODC_PUSHED_TO" >/scratch/policy.json
set --
if [ -n "${ODC_CACHE:-}" ]; then
    set -- --import-cache "$cache" \
        --export-cache "$cache,mode=max,image-manifest=true,oci-mediatypes=true,ignore-error=true"
fi
tries=0
until buildctl --addr "$BUILDKIT_HOST" debug workers >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt "${ODC_TRIES:-120}" ]; then
        echo 'odc: BuildKit did not start in the other container of this pod'
        exit 1
    fi
    sleep 1
done
{
    buildctl --addr "$BUILDKIT_HOST" build --progress=plain --frontend dockerfile.v0 \
        --local "context=$context" --local "dockerfile=$context" \
        --opt "filename=$ODC_DOCKERFILE" --opt "platform=$ODC_PLATFORM" \
        --source-policy-file /scratch/policy.json "$@" \
        --output "type=image,oci-mediatypes=true,$attributes" \
        --metadata-file /scratch/metadata.json
    echo $? >/scratch/code
} 2>&1 | tee /scratch/log
code=$(cat /scratch/code)
if [ "$code" != 0 ]; then
    # A failed step or an invalid file would fail again (exit code 65); a registry that did not answer may do so next time.
    wrong='did not complete successfully: exit code|dockerfile parse error|file with no instructions|failed to compute cache key|failed to read dockerfile'
    wrong="$wrong|failed to resolve source metadata.*(: not found|denied|unauthorized|insufficient_scope)|no match for platform|source .* denied by policy"
    grep -q -E "$wrong" /scratch/log && exit 65
    exit "$code"
fi
digest=$(sed -n 's/.*"containerimage.digest": *"\(sha256:[0-9a-f]\{64\}\)".*/\1/p' /scratch/metadata.json | head -n 1)
if [ -z "$digest" ]; then
    echo 'odc: BuildKit did not report the image that it built'
    exit 1
fi
printf '%s' "$digest" >/dev/termination-log
