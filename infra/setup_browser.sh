#!/bin/sh
# Makes sure that there is a Chromium for the tests in a browser: /usr/bin/chromium, or the one that CHROMIUM names.
set -eu

chromium=${CHROMIUM:-/usr/bin/chromium}
if [ -x "$chromium" ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ -z "${CHROMIUM:-}" ]; then
    echo "Installing Chromium …" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium >/dev/null
    exit 0
fi
echo "There is no Chromium at $chromium. Install it (Debian: apt install chromium), or name one: CHROMIUM=/path make e2e" >&2
exit 1
