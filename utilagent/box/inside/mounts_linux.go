package inside

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// stash is the directory, in the program's /run, for links and the empty file that are mounted elsewhere, and for mounts
// that have no place yet. It is gone when the program starts.
const stash = "/run/.uwf-box"

// readOnly are the attributes of what is only shown.
const readOnly = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID

// taken is a detached mount that will be attached to the program's tree.
type taken struct {
	plan.Mount
	fd    int // -1 if it is created when attached
	tries int // how often it was taken before
	dir   bool
}

// devices are the entries of /dev, in addition to private terminals.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// tree builds the tree that the program sees. /proc, /dev, /run and homes are built where no path leads: the new /run
// lies over the root, and the others in its stash. So paths still lead to the machine's files until the tree is finished.
type tree struct {
	places []place
	system int // number of places that aren't homes
	parent string
	dir    int // parent, open; -1 if there is none. Most mounts have the same parent as the one before
}

// place is an open mount of ours that contains a path of the program's tree.
type place struct {
	path string
	fd   int
}

// newTree begins a tree with homes, and what is shown in them.
func newTree(homes []plan.Mount) (t *tree, err error) {
	mask := unix.Umask(0) // so that files get exactly the requested mode
	defer unix.Umask(mask)
	t = &tree{dir: -1}
	err = t.ownPlaces()
	t.system = len(t.places)
	for i := 0; i < len(homes) && err == nil; i++ {
		m := homes[i]
		if m.Inode = ""; m.Kind == plan.Own { // uwf compares it when it has the rest
			err = t.aside(m.Path, "tmpfs", "mode=0700,size=10%", unix.MS_NODEV)
		} else {
			err = t.add(m)
		}
	}
	return t, at("mount", err)
}

// finish detaches copies of all needed mounts, makes everything read-only, and attaches what was built aside and the
// copies.
func (t *tree) finish(p plan.Plan) (err error) {
	mask := unix.Umask(0)
	defer unix.Umask(mask)
	defer t.closeDir()
	var all []taken
	for _, path := range []string{"/var/tmp", "/tmp"} {
		if isDir(path) {
			p.Mounts = slices.Insert(p.Mounts, 0, plan.Mount{Path: path, Kind: plan.Write, From: p.Temporary})
		}
	}
	for _, m := range p.Mounts {
		taken, err := take(m)
		if err == nil {
			all = append(all, taken)
		} else if !m.Missing || !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	for i, p := range t.places {
		err = unix.MountSetattr(p.fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		if err == nil && i < t.system {
			err = t.put(&taken{Mount: plan.Mount{Path: p.path, Kind: plan.Own}})
		}
		if err != nil {
			return fmt.Errorf("cover %s: %w", p.path, err)
		}
	}
	for i := range all {
		if err := t.put(&all[i]); err != nil {
			return err
		}
	}
	for i := range all {
		if err := all[i].seal(); err != nil {
			return err
		}
	}
	return errors.Join(t.kernelSettings(), os.RemoveAll(stash))
}

// ownPlaces creates what covers the machine's /proc, /dev and /run.
func (t *tree) ownPlaces() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	err := unix.Mount("tmpfs", "/", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=5%")
	run := -1
	if err == nil {
		run, err = open("/..") // "/" is below it
	}
	if err == nil {
		t.places = append(t.places, place{"/run", run})
		err = errors.Join(unix.Mkdirat(run, filepath.Base(stash), 0o700), unix.Mknodat(run, filepath.Base(stash)+"/empty", unix.S_IFREG, 0))
	}
	if err != nil {
		return fmt.Errorf("cover /run: %w", err)
	}
	// EPERM: a container has masked parts of /proc. Keep the existing one, which shows no secrets of the
	// namespace.
	err = t.aside("/proc", "proc", "", unix.MS_NODEV|unix.MS_NOEXEC)
	if err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	t.otherPids()
	for _, err := range []error{
		t.aside("/dev", "tmpfs", "mode=0755,size=64k", unix.MS_NODEV),
		t.aside("/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620", unix.MS_NOEXEC),
		t.aside("/dev/shm", "tmpfs", "mode=1777,size=25%", unix.MS_NODEV),
	} {
		if err != nil {
			return err
		}
	}
	for _, name := range devices {
		if err := t.add(plan.Mount{Path: "/dev/" + name, Kind: plan.Write}); err != nil {
			return err
		}
	}
	links := [][2]string{{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}}
	for _, l := range links {
		if err := t.add(plan.Mount{Path: "/dev/" + l[1], Kind: plan.Link, From: l[0]}); err != nil {
			return err
		}
	}
	return nil
}

// aside mounts a file system for a path where no path leads.
func (t *tree) aside(path, kind, options string, flags uintptr) error {
	run, name := t.places[0].fd, fmt.Sprint(filepath.Base(stash), "/place", len(t.places))
	err := unix.Mkdirat(run, name, 0o755)
	point, fd := -1, -1
	if err == nil {
		point, err = openIn(run, name)
	}
	if err == nil {
		err = errors.Join(unix.Mount(kind, link(point), kind, unix.MS_NOSUID|flags, options), unix.Close(point))
	}
	if err == nil {
		fd, err = openIn(run, name)
	}
	if err != nil {
		return fmt.Errorf("cover %s: %w", path, err)
	}
	t.places = append(t.places, place{path, fd})
	return nil
}

// otherPids makes process IDs start at a varying number. Programs that store their ID in a shared file would
// confuse each other if all started at 2.
func (t *tree) otherPids() {
	at, err := t.find("/proc/sys/kernel/ns_last_pid")
	if err != nil {
		return
	}
	if f, err := os.OpenFile(link(at), os.O_WRONLY, 0); err == nil {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		_, _ = f.WriteString(strconv.Itoa(1000 + int(now.Nsec/1000%30000)))
		_ = f.Close()
	}
	_ = unix.Close(at)
}

// kernelSettings covers files that belong to root and that the root of any namespace could therefore write.
// While they are covered, the kernel refuses to mount another /proc.
func (t *tree) kernelSettings() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		if err := t.add(plan.Mount{Path: path, Kind: plan.Show, Missing: true}); err != nil {
			return err
		}
	}
	return nil
}

// take returns a detached copy of a mount.
func take(m plan.Mount) (taken, error) {
	t, attributes := taken{Mount: m, fd: -1}, uint64(unix.MOUNT_ATTR_NOSUID)
	if m.Kind == plan.Show {
		attributes = readOnly
	}
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
	return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
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

func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (t *tree) find(path string) (int, error) {
	for _, p := range slices.Backward(t.places) { // a home may be in /run
		if rest, inside := strings.CutPrefix(path+"/", p.path+"/"); inside {
			return openIn(p.fd, "./"+strings.TrimSuffix(rest, "/"))
		}
	}
	return open(path)
}

// in opens the directory of a path, which it makes if it doesn't exist.
func (t *tree) in(path string) (dir int, name string, err error) {
	parent, name := filepath.Dir(path), cmp.Or(path[strings.LastIndexByte(path, '/')+1:], ".")
	if parent == t.parent && t.dir >= 0 {
		return t.dir, name, nil
	}
	if dir, err = t.find(parent); errors.Is(err, unix.ENOENT) {
		dir, err = t.makePoint(parent)
	}
	if err == nil {
		t.closeDir()
		t.parent, t.dir = parent, dir
	}
	return dir, name, err
}

func (t *tree) closeDir() {
	if t.dir >= 0 {
		_ = unix.Close(t.dir)
	}
	t.dir = -1
}

// add takes and attaches a mount, unless its file is gone.
func (t *tree) add(m plan.Mount) error {
	taken, err := take(m)
	if m.Missing && errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = t.put(&taken)
	}
	return err
}

// put attaches a mount, to a new file or directory where nothing exists.
func (t *tree) put(m *taken) error {
	dir, name, err := t.in(m.Path)
	if err != nil {
		return fmt.Errorf("make the directory of %s: %w", m.Path, err)
	}
	switch {
	case m.Kind == plan.Own: // built aside
		m.dir = true
		m.fd, err = t.find(m.Path)
	case m.Kind == plan.Hide && m.dir: // visible entries are attached next, then it is sealed
		if err = t.aside(m.Path, "tmpfs", "mode=0755,size=64k", unix.MS_NODEV); err == nil {
			m.fd, err = t.find(m.Path)
		}
	case m.Kind == plan.Link:
		if err := unix.Symlinkat(m.From, dir, name); !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	fd := m.fd
	if fd < 0 && err == nil {
		fd, err = t.cover(m)
	}
	if err != nil {
		return fmt.Errorf("cover %s: %w", m.Path, err)
	}
	if err = attach(fd, dir, name); errors.Is(err, unix.ENOENT) {
		if err = makeIn(dir, name, m.dir); err == nil {
			err = attach(fd, dir, name)
		}
	}
	_ = unix.Close(fd)
	if errors.Is(err, unix.ENOENT) && m.Kind == plan.Show && m.From == "" && !m.dir && m.tries < 100 {
		// Another process has replaced the file since it was taken, as each step does with threads.yaml.
		again, failed := take(m.Mount)
		if again.tries = m.tries + 1; failed == nil {
			return t.put(&again)
		}
		err = failed
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Path, err)
	}
	return nil
}

// attach attaches a mount to an entry of a directory, also if that is a symbolic link.
func attach(fd, dir int, name string) error {
	return unix.MoveMount(fd, "", dir, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// cover returns the file to mount over one that the program must not see.
func (t *tree) cover(m *taken) (int, error) {
	at, err := t.find(stash)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(at) }()
	name := "empty"
	if m.Kind == plan.Link {
		for n := 0; n == 0 || errors.Is(err, unix.EEXIST); n++ {
			name = strconv.Itoa(n)
			err = unix.Symlinkat(m.From, at, name)
		}
	}
	if err != nil {
		return -1, err
	}
	from, err := openIn(at, name)
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
func (t *tree) makePoint(path string) (int, error) {
	dir, name, err := t.in(path)
	if err == nil {
		err = makeIn(dir, name, true)
	}
	if err != nil {
		return -1, err
	}
	return openIn(dir, name)
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

func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
