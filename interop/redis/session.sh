#!/usr/bin/env bash
# The session of docs/redis.md: a Redis client and a Kafka client on one topic.
# It starts a Redis server and a broker of its own, shows every command with
# what it prints, and fails if something else comes out.
#
# Usage: interop/redis/session.sh [path of muster]
set -euo pipefail
cd "$(dirname "$0")/../.."

muster=${1:-bin/muster}
dir=$(mktemp -d)
pids=()
finish() {
	for pid in ${pids[@]+"${pids[@]}"}; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap finish EXIT

fail() {
	printf '\nsession: %s\n' "$*" >&2
	tail -n 20 "$dir"/*.log >&2
	exit 1
}

server=$(command -v redis-server || command -v valkey-server) || fail "no redis-server"
cli=$(command -v redis-cli || command -v valkey-cli) || fail "no redis-cli"
[ -x "$muster" ] || fail "$muster is missing: make build"

free_port() {
	local port
	while port=$((RANDOM % 20000 + 12000)); do
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# until_true TRIES COMMAND…: waits until a command succeeds, a tenth of a second each.
until_true() {
	local tries=$1
	shift
	until "$@" >/dev/null 2>&1; do
		((tries-- > 0)) || fail "gave up waiting for: $*"
		sleep 0.1
	done
}

port=$(free_port)
"$server" --port "$port" --bind 127.0.0.1 --dir "$dir" --appendonly yes >"$dir/redis.log" 2>&1 &
pids+=($!)
redis-cli() { "$cli" -p "$port" --no-raw "$@"; }
until_true 100 redis-cli PING

broker=127.0.0.1:$(free_port)
"$muster" serve --store "redis://127.0.0.1:$port" --listen "$broker" >"$dir/muster.log" 2>&1 &
pids+=($!)
until_true 200 kcat -b "$broker" -L

# run TEXT: shows a command, runs it and shows what it prints, which is kept in $out.
run() {
	echo "\$ $1"
	out=$(eval "$1" 2>"$dir/stderr.log") || fail "that failed"
	echo "$out"
}

# want TEXT…: demands that the output has these lines, or parts of lines.
want() {
	for text in "$@"; do
		grep -qF -- "$text" <<<"$out" || fail "it does not say: $text"
	done
}

lag() { "$cli" -p "$port" --json XINFO GROUPS muster:orders:0 | grep -qF "$1"; }

echo "# Produce with a Kafka client, read with a Redis client."
run "printf 'ann:tea\nbob:coffee\n' | kcat -b $broker -P -t orders -K: -H via=kafka"
run "redis-cli XRANGE muster:orders:0 - +"
want key ann value tea bob coffee timestamp header:via kafka
run "kcat -b $broker -C -t orders -e -q -f '%o %k %s\n'"
want "0 ann tea" "1 bob coffee"

echo
echo "# Add with a Redis client, consume with a Kafka group."
run "redis-cli XADD muster:orders:0 '*' key cleo value milk"
run "redis-cli XADD muster:orders:0 '*' drink water glasses 2"
run "kcat -b $broker -G bar -c 4 -X auto.offset.reset=earliest -q -f '%k %s\n' orders"
want "ann tea" "bob coffee" "cleo milk" ' {"drink":"water","glasses":"2"}'

echo
echo "# The group has committed: Redis shows where it is, and that it lags by nothing."
until_true 100 lag '"lag":0'
run "redis-cli XINFO GROUPS muster:orders:0"
want bar last-delivered-id entries-read 4
run "redis-cli XADD muster:orders:0 '*' value juice"
run "redis-cli XINFO GROUPS muster:orders:0"
lag '"lag":1' || fail "the lag is not 1"

echo
echo "# A group that a Redis client made hands its place to a Kafka group of that name."
run "redis-cli XGROUP CREATE muster:orders:0 kitchen 0"
run "redis-cli XREADGROUP GROUP kitchen cook COUNT 3 STREAMS muster:orders:0 '>'"
run "kcat -b $broker -G kitchen -c 2 -X auto.offset.reset=latest -q -f '%s\n' orders"
want '{"drink":"water","glasses":"2"}' juice

echo
echo "# Delete the groups with a Kafka client, and they are gone."
run "$muster groups delete bar kitchen --yes --broker $broker"
run "redis-cli XINFO GROUPS muster:orders:0"
want "(empty array)"
