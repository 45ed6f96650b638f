#!/busybox sh
# The first process of the guest: modules, the host's files under a layer of memory, cgroup v2, then the job. The end of it is a reset, by which QEMU ends.
box=/busybox
$box mount -t proc proc /proc
$box mount -t sysfs sysfs /sys
$box mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do $box insmod "$module"; done
# Another system than the host's is in a folder of the host, and sees these of the host's paths.
system=
paths=
for word in $($box cat /proc/cmdline); do
  case $word in
    numalign.system=*) system=${word#*=} ;;
    numalign.path=*) paths="$paths ${word#*=}" ;;
  esac
done
options=trans=virtio,version=9p2000.L,msize=512000
$box mount -t 9p -o "ro,$options,cache=loose" host /host || $box reboot -f
$box mount -t tmpfs -o mode=755 layer /layer
$box mkdir /layer/upper /layer/work
$box mount -t overlay -o "lowerdir=/host$system,upperdir=/layer/upper,workdir=/layer/work" overlay /newroot
for path in $paths; do
  $box mkdir -p "/newroot${path%/*}"
  if [ -d "/host$path" ]; then $box mkdir -p "/newroot$path"; else : >"/newroot$path"; fi
  $box mount --bind "/host$path" "/newroot$path"
done
for folder in proc sys dev; do $box mount --move /$folder /newroot/$folder; done
$box mkdir -p /newroot/dev/pts /newroot/dev/shm /newroot/dev/hugepages /newroot/job /newroot/disk
$box mount -t devpts devpts /newroot/dev/pts
$box mount -t tmpfs shm /newroot/dev/shm
$box mount -t tmpfs -o mode=755 run /newroot/run
$box mount -t hugetlbfs hugetlbfs /newroot/dev/hugepages
$box mount -t tracefs tracefs /newroot/sys/kernel/tracing
$box mount -t 9p -o "$options,cache=none" job /newroot/job
[ ! -e /newroot/dev/vda ] || $box mount -t ext4 /newroot/dev/vda /newroot/disk || $box reboot -f
$box mount -t cgroup2 cgroup2 /newroot/sys/fs/cgroup
echo '+cpuset +cpu +memory +pids' >/newroot/sys/fs/cgroup/cgroup.subtree_control
$box ip link set lo up
# The root of the mount namespace too, where container runtimes find themselves and pivot from: from
# here on only this shell's working folder leads to the layer.
cd /newroot
$box mount --move . /
# If no result comes, a line from the host asks what all threads wait for; of the kernel's threads
# only the uninterruptible ones.
(
  read -r _ <dev/ttyS0
  for thread in proc/[0-9]*/task/[0-9]*; do
    read -r stat <"$thread/stat"
    fields=${stat##*) }
    case $fields in
      D*) ;;
      ?' 2 '*) continue ;;
    esac
    read -r place <"$thread/wchan"
    echo "${stat%) *}) ${fields%% *} $place: $($box tr '\0' ' ' <"$thread/cmdline")"
    [ "${fields%% *}" != D ] || $box cat "$thread/stack"
  done >job/processes 2>dev/null
) &
# With systemd as the first process the job is a service.
if $box grep -q numalign.systemd proc/cmdline; then
  $box mkdir -p etc/systemd/system
  # They take a minute, for what is done above or not needed; the first looks through the host's
  # temporary files.
  for unit in systemd-tmpfiles-setup systemd-tmpfiles-setup-dev systemd-modules-load systemd-sysctl systemd-remount-fs \
    systemd-udevd systemd-udev-trigger systemd-random-seed systemd-binfmt kmod-static-nodes systemd-sysusers; do
    $box ln -s /dev/null "etc/systemd/system/$unit.service"
  done
  $box cat >etc/systemd/system/job.target <<'END'
[Unit]
Requires=job.service basic.target
AllowIsolate=yes
END
  $box cat >etc/systemd/system/job.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash /job/command >/job/output 2>&1 </dev/null; echo $? >/job/status; sync; reboot --force --force'
END
  exec $box chroot . /lib/systemd/systemd --unit=job.target
fi
$box chroot . /bin/bash /job/command >job/output 2>&1 <dev/null
echo $? >job/status
$box sync
$box chroot . /bin/umount /disk 2>dev/null
$box reboot -f
