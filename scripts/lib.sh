# Finds or starts the services that the tests need. Sourced by the other scripts.
# Everything listens on loopback only; what is started here is stopped here.

started_pids=()
work_dir=$(mktemp -d "${TMPDIR:-/tmp}/payonce-test.XXXXXX")

stop_started() {
  local pid
  for pid in "${started_pids[@]:-}"; do
    [ -n "$pid" ] && kill "$pid" 2>/dev/null
  done
  for pid in "${started_pids[@]:-}"; do
    [ -n "$pid" ] && wait "$pid" 2>/dev/null
  done
  rm -rf "$work_dir"
}
trap stop_started EXIT

say() { printf '%s\n' "$*" >&2; }

missing=()
loud() { # one loud line for an engine that is not there
  missing+=("$1")
  say "!!!!!! NOT RUN: everything on $1: $2 !!!!!!"
}

port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

wait_port() { # until the port answers or the process is gone
  local port=$1 pid=$2 i
  for i in $(seq 1 300); do
    port_open "$port" && return 0
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

install_package() { # Debian packages, when this user may install them
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  say "installing $1"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >"$work_dir/apt.log" 2>&1 && return 0
  apt-get update -q >>"$work_dir/apt.log" 2>&1
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >>"$work_dir/apt.log" 2>&1
}

as_service_user() { # servers that refuse to run as root run as this user
  if [ "$(id -u)" = 0 ]; then runuser -u "$1" -- "${@:2}"; else "${@:2}"; fi
}

need_postgres() {
  if [ -n "${PAYONCE_TEST_POSTGRES:-}" ]; then return; fi
  if port_open 5432; then
    export PAYONCE_TEST_POSTGRES="postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
    return
  fi
  local bin
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
  # A cluster that the package may have started trusts nobody over TCP, so the
  # tests get one of their own.
  if [ -z "$bin" ] && install_package postgresql; then
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
  fi
  if [ -z "$bin" ]; then loud PostgreSQL "not on 127.0.0.1:5432, and no package to start it from"; return; fi
  local user=postgres data=$work_dir/pg port=55432
  [ "$(id -u)" = 0 ] || user=$(id -un)
  mkdir -p "$data" && chmod 755 "$work_dir"
  [ "$(id -u)" = 0 ] && chown "$user" "$data"
  as_service_user "$user" "$bin/initdb" -D "$data" -U postgres -A trust >"$work_dir/pg.log" 2>&1
  as_service_user "$user" "$bin/postgres" -D "$data" -p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= >>"$work_dir/pg.log" 2>&1 &
  started_pids+=($!)
  if wait_port $port $!; then
    export PAYONCE_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
  else
    loud PostgreSQL "could not be started: $(tail -n 1 "$work_dir/pg.log")"
  fi
}

need_mariadb() {
  if [ -n "${PAYONCE_TEST_MYSQL:-}" ]; then return; fi
  if port_open 3306; then
    export PAYONCE_TEST_MYSQL="mysql://root@127.0.0.1:3306/mysql"
    return
  fi
  if ! command -v mariadbd >/dev/null && ! [ -x /usr/sbin/mariadbd ]; then
    install_package mariadb-server || true
  fi
  local server=/usr/sbin/mariadbd user=mysql data=$work_dir/maria port=53306
  [ -x $server ] || server=$(command -v mariadbd || true)
  if [ -z "$server" ]; then loud MariaDB "not on 127.0.0.1:3306, and no package to start it from"; return; fi
  [ "$(id -u)" = 0 ] || user=$(id -un)
  mkdir -p "$data" && chmod 755 "$work_dir"
  [ "$(id -u)" = 0 ] && chown "$user" "$data"
  mariadb-install-db --no-defaults --datadir="$data" --user="$user" --auth-root-authentication-method=normal >"$work_dir/maria.log" 2>&1
  "$server" --no-defaults --datadir="$data" --user="$user" --port=$port --bind-address=127.0.0.1 --socket="$data/s.sock" >>"$work_dir/maria.log" 2>&1 &
  started_pids+=($!)
  if wait_port $port $!; then
    export PAYONCE_TEST_MYSQL="mysql://root@127.0.0.1:$port/mysql"
  else
    loud MariaDB "could not be started: $(tail -n 1 "$work_dir/maria.log")"
  fi
}

need_go() {
  command -v go >/dev/null && return
  say "Go 1.26 or newer is needed: https://go.dev/dl"
  exit 1
}
