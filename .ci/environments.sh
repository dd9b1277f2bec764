# Sourced by the scripts beside it: environments that are made once, each in a folder of its own.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
base_python=${PYTHON:-python3}
# Modules are compiled when they are first imported: most of what is installed never is. ("false" switches the option on.) They must
# then be kept: where an environment forbids that (PYTHONDONTWRITEBYTECODE), each process compiles torch anew, for seconds.
export PIP_NO_COMPILE=false PYTHONDONTWRITEBYTECODE= PIP_DISABLE_PIP_VERSION_CHECK=1

# pip_install PYTHON ARGUMENTS...: as `pip install`, by uv where it works, in a fourth of the time. uv does not read what pip is
# configured to, so it is given that.
pip_install() {
    local python=$1
    shift
    (
        uv=$("$base_python" -c 'import uv; print(uv.find_uv_bin())') || exit
        for pair in index-url=UV_DEFAULT_INDEX extra-index-url=UV_EXTRA_INDEX_URL constraint=UV_CONSTRAINT cert=SSL_CERT_FILE; do
            value=$(configured "${pair%=*}")
            test -z "$value" || export "${pair#*=}=$value"
        done
        UV_FIND_LINKS=$(configured find-links | tr ' ' ',') UV_INDEX_STRATEGY=unsafe-best-match UV_LINK_MODE=copy \
            "$uv" pip install --python "$python" "$@"
    ) || "$python" -m pip install "$@"
}

# configured NAME: what pip's configuration says of it; several values with spaces between them.
configured() {
    "$base_python" -m pip config list | sed -nE "s/^(:env:\.|global\.|install\.)$1='(.*)'\$/\2/p" | head -n 1 | sed 's/\\n/ /g'
}

# layered FOLDER: an environment that sees the packages of the active one and adds its own.
layered() {
    below=$("$base_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$base_python" -m venv "$1" &&
        echo "$below" >"$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth"
}

# made FOLDER STAMP WHAT: calls install, a function of the script, unless it did so before. Where it fails, the script ends with
# exit code 75 and the last lines of the log; CI then says that WHAT was not run and goes on. With ONLY_MAKE set it ends here.
made() {
    test -f "$1/$2" || make_it "$@"
    test -z "${ONLY_MAKE:-}" || exit 0
}

make_it() {
    mkdir -p "$1"
    echo "Installing what $3 need ..."
    if install "$1" >"$1/install.log" 2>&1; then
        touch "$1/$2"
    else
        tail -n 5 "$1/install.log" >&2 || true
        echo "$3 NOT RUN: what they need does not install here (more in install.log of the environment's folder)" >&2
        exit 75
    fi
}
