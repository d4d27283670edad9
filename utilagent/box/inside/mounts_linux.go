package inside

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// stash is the directory for links and the empty file that are mounted elsewhere. It is gone when the program
// starts.
const stash = "/run/.uwf-box"

// taken is a detached mount that will be attached to the program's tree.
type taken struct {
	plan.Mount
	fd    int // -1 if it is created when attached
	tries int // how often it was taken before
	dir   bool
}

// devices are the entries of /dev, in addition to private terminals.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// mount builds the tree that the program sees: it detaches copies of all needed mounts, makes everything
// read-only, covers system directories with private ones, and attaches the copies.
func mount(p plan.Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return at("mount", fmt.Errorf("make / private: %w", err))
	}
	var all []taken
	for _, m := range p.Mounts {
		t, err := take(m)
		if m.Missing && errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return at("mount", err)
		}
		all = append(all, t)
	}
	var own []taken
	for _, name := range devices {
		t, err := take(plan.Mount{Path: "/dev/" + name, Kind: plan.Write})
		if err != nil {
			return at("mount", err)
		}
		own = append(own, t)
	}
	for _, path := range []string{"/tmp", "/var/tmp"} {
		if isDir(path) {
			t, err := take(plan.Mount{Path: path, Kind: plan.Write, From: p.Temporary})
			if err != nil {
				return at("mount", err)
			}
			all = append([]taken{t}, all...)
		}
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, readOnly); err != nil {
		return at("mount", fmt.Errorf("make / read-only: %w", err))
	}
	if err := ownPlaces(own); err != nil {
		return at("mount", err)
	}
	for _, t := range all {
		if err := t.put(); err != nil {
			return at("mount", err)
		}
	}
	for _, t := range all {
		if err := t.seal(); err != nil {
			return at("mount", err)
		}
	}
	return at("mount", errors.Join(kernelSettings(), os.RemoveAll(stash)))
}

// ownPlaces covers the machine's /proc, /dev and /run.
func ownPlaces(own []taken) error {
	// EPERM: a container has masked parts of /proc. Keep the existing one, which shows no secrets of the
	// namespace.
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mount /proc: %w", err)
	}
	otherPids()
	if err := tmpfs("/dev", "mode=0755,size=64k"); err != nil {
		return err
	}
	for _, t := range own {
		if err := t.put(); err != nil {
			return err
		}
	}
	links := [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}}
	for _, l := range links {
		if err := unix.Symlink(l[0], "/dev/"+l[1]); err != nil {
			return fmt.Errorf("make /dev/%s: %w", l[1], err)
		}
	}
	if err := errors.Join(unix.Mkdir("/dev/pts", 0o755), unix.Mkdir("/dev/shm", 0o755)); err != nil {
		return fmt.Errorf("make /dev: %w", err)
	}
	err = unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	if err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	for _, place := range [][2]string{{"/dev/shm", "mode=1777,size=25%"}, {"/run", "mode=0755,size=5%"}} {
		if err := tmpfs(place[0], place[1]); err != nil {
			return err
		}
	}
	return unix.Mkdir(stash, 0o700)
}

// otherPids makes process IDs start at a varying number. Programs that store their ID in a shared file would
// confuse each other if all started at 2.
func otherPids() {
	if f, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0); err == nil {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		_, _ = f.WriteString(strconv.Itoa(1000 + int(now.Nsec/1000%30000)))
		_ = f.Close()
	}
}

// kernelSettings covers files that belong to root and that the root of any namespace could therefore write.
// While they are covered, the kernel refuses to mount another /proc.
func kernelSettings() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		t, err := take(plan.Mount{Path: path, Kind: plan.Show})
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = t.put()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tmpfs(path, options string) error {
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	return nil
}

// take returns a detached copy of a mount.
func take(m plan.Mount) (taken, error) {
	t := taken{Mount: m, fd: -1}
	if t.dir = m.Kind == plan.Own; t.dir || m.Kind == plan.Link {
		return t, nil
	}
	from, err := open(cmp.Or(m.From, m.Path))
	if err != nil {
		return t, fmt.Errorf("find %s: %w", cmp.Or(m.From, m.Path), err)
	}
	defer func() { _ = unix.Close(from) }()
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return t, fmt.Errorf("look at %s: %w", m.Path, err)
	}
	if m.Inode != "" && m.Inode != fmt.Sprintf("%d:%d", st.Dev, st.Ino) {
		return t, fmt.Errorf("%s was replaced: %w", m.Path, unix.ESTALE)
	}
	if t.dir = st.Mode&unix.S_IFMT == unix.S_IFDIR; m.Kind == plan.Hide {
		return t, nil
	}
	if m.Kind == plan.Overlay {
		t.fd, err = overlay(from, m)
	} else {
		t.fd, err = clone(from, m.Kind)
	}
	if err != nil {
		err = fmt.Errorf("take %s: %w", m.Path, err)
	}
	return t, err
}

// clone copies a mount and everything below it, with set-ID bits disabled.
func clone(from int, kind plan.Kind) (int, error) {
	fd, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if kind != plan.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr)
}

// overlay covers a directory with an overlay, which receives all writes. It is volatile: otherwise its end waits until
// the disk has stored everything that any program has written. The kernel's mark of an earlier one prevents the mount.
func overlay(lower int, m plan.Mount) (int, error) {
	_ = unix.Unlink(m.Work + "/work/incompat/volatile/dirty") // the mount reports a failure
	_ = unix.Rmdir(m.Work + "/work/incompat/volatile")
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	layers := []struct {
		key string
		fd  int
	}{{"lowerdir", lower}, {"upperdir", -1}, {"workdir", -1}}
	for i, path := range []string{m.Upper, m.Work} {
		fd, err := open(path)
		if err != nil {
			return -1, fmt.Errorf("find %s: %w", path, err)
		}
		defer func() { _ = unix.Close(fd) }()
		layers[i+1].fd = fd
	}
	for _, l := range layers { // by descriptor, because colons and commas are special in paths
		if err := unix.FsconfigSetString(fs, l.key, fmt.Sprintf("/proc/self/fd/%d", l.fd)); err != nil {
			return -1, fmt.Errorf("%s: %w", l.key, err)
		}
	}
	if err := errors.Join(unix.FsconfigSetFlag(fs, "userxattr"), unix.FsconfigSetFlag(fs, "volatile"), unix.FsconfigCreate(fs)); err != nil {
		return -1, err
	}
	for _, dir := range []string{"/work", "/work/incompat", "/work/incompat/volatile"} {
		_ = unix.Chmod(m.Work+dir, 0o700) // the kernel creates them without permissions, and the user could not remove them
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// open opens a path without links: a link that appears now was placed there to mislead us.
func open(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// put attaches a mount to the program's tree.
func (t taken) put() error {
	point, err := open(t.Path)
	if errors.Is(err, unix.ENOENT) {
		if t.Kind == plan.Link {
			return t.link()
		}
		if point, err = makePoint(t.Path, t.dir); err != nil {
			return fmt.Errorf("make %s: %w", t.Path, err)
		}
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", t.Path, err)
	}
	defer func() { _ = unix.Close(point) }()
	place := fmt.Sprintf("/proc/self/fd/%d", point)
	switch {
	case t.Kind == plan.Own:
		return tmpfs(place, "mode=0700,size=10%")
	case t.Kind == plan.Hide && t.dir: // visible entries are attached next, then it is sealed
		return tmpfs(place, "mode=0755,size=64k")
	}
	fd := t.fd
	if fd < 0 {
		if fd, err = t.cover(point); err != nil {
			return fmt.Errorf("cover %s: %w", t.Path, err)
		}
	}
	err = unix.MoveMount(fd, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	_ = unix.Close(fd)
	if errors.Is(err, unix.ENOENT) && t.Kind == plan.Show && t.From == "" && !t.dir && t.tries < 100 {
		// Another process has replaced the file since it was taken, as each step does with threads.yaml.
		again, failed := take(t.Mount)
		if again.tries = t.tries + 1; failed == nil {
			return again.put()
		}
		err = failed
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", t.Path, err)
	}
	return nil
}

// cover creates the file that is mounted over one that the program must not see.
func (t taken) cover(point int) (int, error) {
	name, err := free()
	if err != nil {
		return -1, err
	}
	if t.Kind == plan.Link {
		err = unix.Symlink(t.From, name)
	} else {
		err = unix.Mknod(name, unix.S_IFREG, 0)
	}
	if err != nil {
		return -1, err
	}
	from, err := open(name)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(from) }()
	return clone(from, plan.Show)
}

// free returns an unused name in the stash.
func free() (string, error) {
	entries, err := os.ReadDir(stash)
	return stash + "/" + strconv.Itoa(len(entries)), err
}

// seal makes a directory that hides another read-only, and closes it if nothing in it is visible.
func (t taken) seal() error {
	if t.Kind != plan.Hide || !t.dir {
		return nil
	}
	fd, err := open(t.Path)
	if errors.Is(err, unix.ENOENT) {
		return nil // something else was attached over it
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", t.Path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	at := fmt.Sprintf("/proc/self/fd/%d", fd)
	if entries, err := os.ReadDir(at); err == nil && len(entries) == 0 {
		if err := unix.Chmod(at, 0); err != nil {
			return fmt.Errorf("close %s: %w", t.Path, err)
		}
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// link creates a link where nothing exists.
func (t taken) link() error {
	parent, name := split(t.Path)
	dir, err := makePoint(parent, true)
	if err != nil {
		return fmt.Errorf("make %s: %w", parent, err)
	}
	defer func() { _ = unix.Close(dir) }()
	return unix.Symlinkat(t.From, dir, name)
}

// makePoint creates a mount point and its parents. It follows no links, because an earlier command may have
// left some in private directories.
func makePoint(path string, dir bool) (int, error) {
	parent, name := split(path)
	up, err := open(parent)
	if errors.Is(err, unix.ENOENT) {
		up, err = makePoint(parent, true)
	}
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(up) }()
	if dir {
		err = unix.Mkdirat(up, name, 0o755)
	} else {
		err = unix.Mknodat(up, name, unix.S_IFREG|0o600, 0)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return unix.Openat2(up, name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
