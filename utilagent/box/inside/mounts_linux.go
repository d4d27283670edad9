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
const (
	stash = "/run/.uwf-box"
	empty = stash + "/empty"
)

// readOnly are the attributes of what is only shown.
const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID

// taken is a detached mount that will be attached to the program's tree.
type taken struct {
	plan.Mount
	fd      int // -1 if it is created when attached
	tries   int // how often it was taken before
	dir     bool
	missing bool // it has disappeared
}

// devices are the entries of /dev, in addition to private terminals.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// mount builds the tree that the program sees: it detaches copies of all needed mounts, makes everything
// read-only, covers system directories with private ones, and attaches the copies.
func mount(p plan.Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return at("mount", fmt.Errorf("make / private: %w", err))
	}
	var mounts, devs []plan.Mount
	for _, path := range []string{"/var/tmp", "/tmp"} {
		if isDir(path) {
			mounts = append(mounts, plan.Mount{Path: path, Kind: plan.Write, From: p.Temporary})
		}
	}
	for _, name := range devices {
		devs = append(devs, plan.Mount{Path: "/dev/" + name, Kind: plan.Write})
	}
	mounts = append(mounts, p.Mounts...)
	all, own, program := make([]taken, len(mounts)), make([]taken, len(devs)), tree{dir: -1}
	defer program.close()
	// What is only shown is taken when everything is read-only, and needs no attributes then.
	err := errors.Join(takeAll(all, mounts, false), takeAll(own, devs, false))
	if err != nil {
		return at("mount", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return at("mount", fmt.Errorf("make / read-only: %w", err))
	}
	if err = takeAll(all, mounts, true); err == nil {
		err = ownPlaces(own)
	}
	if err == nil {
		err = each(all, program.put)
	}
	if err == nil {
		err = each(all, (*taken).seal)
	}
	return at("mount", errors.Join(err, kernelSettings(), os.RemoveAll(stash)))
}

// takeAll takes mounts that only show something, or the others.
func takeAll(all []taken, mounts []plan.Mount, shown bool) error {
	for i, m := range mounts {
		attributes := uint64(unix.MOUNT_ATTR_NOSUID)
		if m.Kind == plan.Show {
			attributes = 0
		}
		if shown != (attributes == 0) {
			continue
		}
		t, err := take(m, attributes)
		if t.missing = m.Missing && errors.Is(err, unix.ENOENT); err != nil && !t.missing {
			return err
		}
		all[i] = t
	}
	return nil
}

// each calls do for the mounts that are there.
func each(all []taken, do func(*taken) error) error {
	for i := range all {
		if t := &all[i]; !t.missing {
			if err := do(t); err != nil {
				return err
			}
		}
	}
	return nil
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
	devs := tree{dir: -1}
	defer devs.close()
	if err := each(own, devs.put); err != nil {
		return err
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
	return errors.Join(unix.Mkdir(stash, 0o700), unix.Mknod(empty, unix.S_IFREG, 0))
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
	proc := tree{dir: -1}
	defer proc.close()
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		t, err := take(plan.Mount{Path: path, Kind: plan.Show}, readOnly)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = proc.put(&t)
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

// take returns a detached copy of a mount, to which attributes are added.
func take(m plan.Mount, attributes uint64) (taken, error) {
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
	if m.Inode != "" && m.Inode != strconv.FormatUint(uint64(st.Dev), 10)+":"+strconv.FormatUint(st.Ino, 10) { //nolint:unconvert // differs by system
		return t, fmt.Errorf("%s was replaced: %w", m.Path, unix.ESTALE)
	}
	if t.dir = st.Mode&unix.S_IFMT == unix.S_IFDIR; m.Kind == plan.Hide {
		return t, nil
	}
	if m.Kind == plan.Overlay {
		t.fd, err = overlay(from, m)
	} else {
		t.fd, err = clone(from, attributes)
	}
	if err != nil {
		err = fmt.Errorf("take %s: %w", m.Path, err)
	}
	return t, err
}

// clone copies a mount and everything below it, and adds attributes.
func clone(from int, attributes uint64) (int, error) {
	fd, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	if attributes != 0 {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
	}
	return fd, err
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
		if err := unix.FsconfigSetString(fs, l.key, link(l.fd)); err != nil {
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
func open(path string) (int, error) { return openIn(unix.AT_FDCWD, path) }

func openIn(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// link returns a path of an open file.
func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// tree attaches mounts to the program's tree. Most have the same parent directory as the one before.
type tree struct {
	parent string
	dir    int // the parent, open; -1 if there is none
}

// in opens the directory of a path, which it makes if it doesn't exist.
func (r *tree) in(path string) (dir int, name string, err error) {
	parent, name := split(path)
	if name == "" { // the root
		name = "."
	}
	if parent == r.parent && r.dir >= 0 {
		return r.dir, name, nil
	}
	if dir, err = open(parent); errors.Is(err, unix.ENOENT) {
		dir, err = makePoint(parent, true)
	}
	if err == nil {
		r.close()
		r.parent, r.dir = parent, dir
	}
	return dir, name, err
}

func (r *tree) close() {
	if r.dir >= 0 {
		_ = unix.Close(r.dir)
	}
	r.dir = -1
}

// put attaches a mount, to a new file or directory where nothing exists.
func (r *tree) put(t *taken) error {
	if t.Missing && t.isRemoved() {
		return r.again(t)
	}
	dir, name, err := r.in(t.Path)
	if err != nil {
		return fmt.Errorf("make the directory of %s: %w", t.Path, err)
	}
	switch {
	case t.Kind == plan.Own:
		return t.tmpfs(dir, name, "mode=0700,size=10%")
	case t.Kind == plan.Hide && t.dir: // visible entries are attached next, then it is sealed
		return t.tmpfs(dir, name, "mode=0755,size=64k")
	case t.Kind == plan.Link:
		if err := unix.Symlinkat(t.From, dir, name); !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	if t.fd < 0 {
		if t.fd, err = t.cover(); err != nil {
			return fmt.Errorf("cover %s: %w", t.Path, err)
		}
	}
	if err = attach(t.fd, dir, name); errors.Is(err, unix.ENOENT) && !t.isRemoved() {
		if err = makeIn(dir, name, t.dir); err == nil {
			err = attach(t.fd, dir, name)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return r.again(t)
	}
	_ = unix.Close(t.fd)
	if err != nil {
		return fmt.Errorf("mount %s: %w", t.Path, err)
	}
	return nil
}

// isRemoved reports whether the mounted file or directory was deleted.
func (t *taken) isRemoved() bool {
	var st unix.Stat_t
	return t.fd >= 0 && unix.Fstat(t.fd, &st) == nil && st.Nlink == 0
}

// again mounts what another process has replaced since it was taken, as each step does with threads.yaml, or nothing
// if it was removed, such as the worktree of another thread.
func (r *tree) again(t *taken) error {
	_ = unix.Close(t.fd)
	r.close() // it may be another directory, too
	next, err := take(t.Mount, 0)
	switch next.tries = t.tries + 1; {
	case t.Missing && errors.Is(err, unix.ENOENT):
		t.missing = true
		return nil
	case err == nil && t.Inode == "" && t.From == "" && t.tries < 100: // now it is read-only
		return r.put(&next)
	}
	return fmt.Errorf("mount %s: %w", t.Path, cmp.Or(err, error(unix.ENOENT)))
}

// attach attaches a mount to an entry of a directory, also if that is a symbolic link.
func attach(fd, dir int, name string) error {
	return unix.MoveMount(fd, "", dir, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// tmpfs covers an entry of a directory, which may be new, with an empty directory.
func (t *taken) tmpfs(dir int, name, options string) error {
	point, err := openIn(dir, name)
	if errors.Is(err, unix.ENOENT) {
		if err = makeIn(dir, name, true); err == nil {
			point, err = openIn(dir, name)
		}
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", t.Path, err)
	}
	defer func() { _ = unix.Close(point) }()
	return tmpfs(link(point), options)
}

// cover returns the file to mount over one that the program must not see.
func (t *taken) cover() (int, error) {
	name, err := empty, error(nil)
	if t.Kind == plan.Link {
		for n := 0; n == 0 || errors.Is(err, unix.EEXIST); n++ {
			name = stash + "/" + strconv.Itoa(n)
			err = unix.Symlink(t.From, name)
		}
	}
	if err != nil {
		return -1, err
	}
	from, err := open(name)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(from) }()
	return clone(from, readOnly)
}

// seal makes a directory that hides another read-only, and closes it if nothing in it is visible.
func (t *taken) seal() error {
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
	at := link(fd)
	if entries, err := os.ReadDir(at); err == nil && len(entries) == 0 {
		if err := unix.Chmod(at, 0); err != nil {
			return fmt.Errorf("close %s: %w", t.Path, err)
		}
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
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
	if err := makeIn(up, name, dir); err != nil {
		return -1, err
	}
	return openIn(up, name)
}

// makeIn creates a mount point in a directory unless it exists.
func makeIn(in int, name string, dir bool) (err error) {
	if dir {
		err = unix.Mkdirat(in, name, 0o755)
	} else {
		err = unix.Mknodat(in, name, unix.S_IFREG|0o600, 0)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
