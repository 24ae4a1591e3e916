#!/bin/sh
# Before the removal, but not before an upgrade: Debian says "remove", Fedora that 0 remain.
set -e
[ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl disable --now muster.service ;;
esac
