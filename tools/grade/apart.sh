# Run a command in FOLDER/notebooks, beside a copy of the course, and limit what it takes:
#
#     sh apart.sh apart|open FOLDER FONTS COMMAND...
#
# apart: there is no network; there are at most 64 processes and threads, which end with
# the first one, and with the grader; nothing can be written but 1 GB in FOLDER and 256 MB of shared memory.
# This fails where the system permits no namespaces; and where root starts it, the number
# of processes has no limit. open: none of it holds.
# A file has at most 200 MB, a process 4 GB of memory (12 GB with what is shared, such as
# PyTorch itself). FONTS is matplotlib's cache, whose list of fonts takes long to make.
exec >/dev/null 2>&1
mode=$1 folder=$2 fonts=$3
shift 3
case $mode in
apart)
    exec setpriv --pdeathsig KILL \
        unshare --user --map-root-user --net --pid --fork --kill-child --mount \
        sh "$0" inside "$folder" "$fonts" "$@"
    ;;
inside)
    mount -t tmpfs -o size=1g tmpfs "$folder" || exit 1
    mount -t tmpfs -o size=256m tmpfs /dev/shm || exit 1
    while read -r _ target _; do
        target=$(printf %b "$target") # a space is written as \040
        case $target in "$folder" | /dev/shm) continue ;; esac
        # What is hidden below another mount can't be changed, nor be written.
        mount -o remount,bind,ro "$target" 2>/dev/null || [ ! -w "$target" ] || exit 1
    done </proc/self/mounts
    # Nothing is left that could undo this.
    set -- setpriv --no-new-privs --bounding-set=-all --inh-caps=-all \
        prlimit --core=0 --nproc=64 "$@"
    ;;
esac
course=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
mkdir "$folder/notebooks" "$folder/.cache" || exit 1
cp -R "$course/utils" "$course/data" "$folder" || exit 1
cp -R "$course/notebooks/img" "$folder/notebooks" || exit 1
cp -R "$fonts" "$folder/.cache/matplotlib" 2>/dev/null
cd "$folder/notebooks" || exit 1
ulimit -f 390625 # times 512 bytes
ulimit -d 4194304 && ulimit -v 12582912 # times 1024 bytes; macOS can't
exec env -i PATH="$PATH" HOME="$folder" TMPDIR="$folder" PYTHONPATH="$folder" \
    PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 LANG=C.UTF-8 MPLBACKEND=agg "$@"
