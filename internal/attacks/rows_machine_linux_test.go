//go:build instruments

package attacks

// machineRows try to access other processes and services on the machine.
func machineRows() []row {
	held := func(name, script string) row { return row{name: name, script: script, reach: true, landlock: "held"} }
	return []row{
		held("a-signal", `kill -0 $HOSTPID`),
		held("a-signal-to-a-thread", `$A tgkill $HOSTPID`),
		held("a-signal-by-pidfd", `$A pidfdsignal $HOSTPID`),
		held("a-signal-to-uwf", `p=$(sed -n 's/^PPid:.//p' /proc/$PPID/status); [ "$p" -gt 1 ] && kill -0 "$p"`),
		held("priority", `$A nice $HOSTPID`),
		held("processors", `$A affinity $HOSTPID`),
		held("limits", `$A limits $HOSTPID`),
		held("out-of-memory", `echo 1000 > /proc/$HOSTPID/oom_score_adj`),
		held("the-name-of-a-process", `echo x > /proc/$HOSTPID/comm`),
		held("timer-slack", `echo 1 > /proc/$HOSTPID/timerslack_ns`),
		held("a-debugger", `$A ptrace $HOSTPID`),
		held("a-debugger-on-pid-1-of-the-box", `[ "$TIER" = box ] && $A ptrace 1`),
		held("write-memory", `$A write /proc/$HOSTPID/mem`),
		held("the-list-of-its-files", `ls /proc/$HOSTPID/fd`),
		held("its-directory", `ls /proc/$HOSTPID/cwd/`),
		held("its-mounts", `$A setns $HOSTPID mnt`),
		held("its-user-namespace", `$A setns $HOSTPID user`),
		held("its-network", `$A setns $HOSTPID net`),
		held("its-processes", `$A setns $HOSTPID pid`),
		held("namespaces-of-pid-1", `$A setns 1 mnt`),
		held("it-is-seen", `[ -e /proc/$HOSTPID/status ]`),
		held("an-abstract-socket", `$A abstract uwf-attack-$HOSTNAME_`),
		{name: "a-socket-in-the-home", script: `$A connect $H/.gnupg/S.gpg-agent`, reach: true, landlock: "open: reached"},
		{name: "a-socket-in-tmp", script: `$A connect /tmp/uwf-attack-$HOSTNAME_`, reach: true, landlock: "open: reached"},
		{name: "a-socket-elsewhere", script: `$A connect $DIR/run/socket`, reach: true, landlock: "open: reached", box: "open: reached"},
		{name: "a-datagram-elsewhere", script: `$A datagram $DIR/run/datagrams`, reach: true, landlock: "open: reached", box: "open: reached"},
		held("a-queue-of-messages", `$A mq uwf-attack-$HOSTNAME_`),
		held("remove-shared-memory", `rm /dev/shm/uwf-attack-$HOSTNAME_`),
		held("a-file-in-shared-memory", `[ "$TIER" = landlock ] && echo x > /dev/shm/uwf-attack-new-$HOSTNAME_ && rm /dev/shm/uwf-attack-new-$HOSTNAME_`),
		held("a-terminal", `$A write $HOSTTTY`),
		held("type-into-a-terminal", `$A type $HOSTTTY`),
		held("the-terminal-of-the-user", `$A write /dev/tty`),
		held("descriptors-that-nobody-meant", `$A fds`),
		held("the-log-of-the-kernel", `head -c 1 /dev/kmsg`),
		held("memory-of-the-machine", `head -c 1 /dev/mem || head -c 1 /proc/kcore`),
	}
}

// kernelRows make system calls that a command does not need.
func kernelRows() []row {
	held := func(name, script string) row { return row{name: name, script: script, reach: true, landlock: "held"} }
	rows := []row{
		held("take-a-mount-away", `$A umount .git/hooks || $A umount $H || $A umount .git/config || $A umount .git`),
		held("mount-over-it", `$A mount .git/hooks`),
		held("bind-over-it", `$A bind docs .git/hooks`),
		held("mount-it-writable", `$A remount .git/hooks || $A remount /`),
		held("a-new-mount", `$A fsopen`),
		held("a-copy-of-a-mount", `$A opentree .git/hooks`),
		held("attributes-of-a-mount", `$A setattr /`),
		held("another-root", `$A pivot docs || $A chroot docs`),
		held("mounts-of-its-own", `$A unshare`),
		held("a-user-namespace", `$A userns true`),
		held("a-user-namespace-and-a-mount", `$A userns $A mount .git/hooks`),
		held("a-user-namespace-and-no-mount", `$A userns $A umount $H`),
		held("a-network-of-its-own", `$A usernet true`),
		held("io-uring", `$A uring`),
		held("bpf", `$A bpf`),
		held("page-faults-of-its-own", `$A userfault`),
		held("performance-counters", `$A perf`),
		held("keys-of-the-kernel", `$A keyctl`),
		held("events-of-files", `$A fanotify`),
		held("vsock", `$A vsock`),
		held("packets", `$A packet`),
		held("raw-packets", `$A rawicmp`),
		held("ciphers-of-the-kernel", `$A alg`),
		held("another-user", `$A seteuid`),
		held("capabilities", `$A capable`),
		held("sudo", `sudo -n true || su -c true </dev/null`),
		held("a-device", `mknod dev b 254 0 || mknod dev2 c 1 3`),
		held("where-cores-go", `$A write /proc/sys/kernel/core_pattern`),
		held("settings-of-the-kernel", `$A write /proc/sys/kernel/hostname || $A write /proc/sys/vm/drop_caches`),
		held("the-key-of-the-kernel", `$A write /proc/sysrq-trigger`),
		held("devices-of-the-kernel", `$A write /sys/kernel/uevent_helper || $A write /sys/kernel/profiling || $A write /sys/power/state`),
		held("groups-of-processes", `mkdir /sys/fs/cgroup/uwf-attack && rmdir /sys/fs/cgroup/uwf-attack`),
	}
	return rows
}

// leftRows leave a process running.
func leftRows() []row {
	left := func(name, script string) row { return row{name: name, script: script, landlock: "undone"} }
	return []row{
		{name: "in-the-background", script: `$A stay $ID - &`, landlock: "undone", unseen: true},
		{name: "in-a-session-of-its-own", script: `setsid $A stay $ID - &`, landlock: "undone", unseen: true},
		left("without-a-variable", `env -i setsid $A stay $ID - &`),
		left("two-forks", `(env -i setsid sh -c "$A stay $ID - & exit 0" &) &`),
		{name: "without-a-terminal", script: `nohup env -i $A stay $ID - &`, landlock: "undone", unseen: true},
		left("all-signals-ignored", `trap '' TERM INT HUP QUIT; env -i setsid $A stay $ID - &`),
		left("many", `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do env -i setsid $A stay $ID - & done`),
		left("always-a-new-one", `env -i A="$A" ID="$ID" PATH="$PATH" setsid sh -c 'for i in $(seq 100); do setsid $A stay $ID - & sleep 0.02; done' $W/ &`),
		left("in-another-directory", `cd / && env -i setsid $A stay $ID - &`),
		left("stopped", `env -i setsid sh -c "kill -STOP \$\$; exec $A stay $ID -" $A stay $ID - &`),
		left("by-another-name", `cp $A renamed && env -i setsid ./renamed stay $ID - $W/ &`),
		left("without-its-program", `cp $A gone && env -i setsid ./gone stay $ID - $W/ & sleep 0.1; rm gone`),
	}
}
