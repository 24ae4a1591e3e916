#!/bin/sh
# After the removal, but not after an upgrade. The records in /var/lib/muster stay, also after
# a purge.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl daemon-reload ;;
esac
