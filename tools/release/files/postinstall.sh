#!/bin/sh
# After the installation: nothing is started, but a broker that runs gets the new program.
# Debian says "configure" and the old version, if there was one; Fedora how many there are.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1:$2" in
configure: | 1:*) ;;
configure:* | 2:*) systemctl try-restart muster.service ;;
esac
