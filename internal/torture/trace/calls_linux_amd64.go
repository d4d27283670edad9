package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// call is a system call that changes a disk.
type call struct {
	name string // as in syscalls(2)
	by   place
	op   durabletest.Kind
}

// place describes where a call's object is found. For calls with two objects, the second is the one that the
// call creates.
type place int

const (
	byFD      place = iota // the first argument is a descriptor
	byPath                 // the first argument is a path
	byPaths                // the first two arguments are paths
	byPathAt               // the first argument is a directory, the second a path
	byPathsAt              // the same twice
)

// Calls that the disk model ([durabletest.Replay]) does not support. Programs under test use unmodelled calls
// only for notes in lock files, which are covered by no guarantee; other uses must be detected.
const (
	unpromised durabletest.Kind = "" // modes and times
	unmodelled durabletest.Kind = "unmodelled"
)

// changing returns the calls that change a disk.
func changing() map[uint64]call {
	return map[uint64]call{
		unix.SYS_WRITE:           {"write", byFD, durabletest.OpAppend},
		unix.SYS_PWRITE64:        {"pwrite64", byFD, unmodelled},
		unix.SYS_WRITEV:          {"writev", byFD, unmodelled},
		unix.SYS_PWRITEV:         {"pwritev", byFD, unmodelled},
		unix.SYS_COPY_FILE_RANGE: {"copy_file_range", byFD, unmodelled},
		unix.SYS_FALLOCATE:       {"fallocate", byFD, unpromised},
		unix.SYS_FTRUNCATE:       {"ftruncate", byFD, durabletest.OpTruncate},
		unix.SYS_TRUNCATE:        {"truncate", byPath, unmodelled},
		unix.SYS_FSYNC:           {"fsync", byFD, durabletest.OpSyncFile},
		unix.SYS_FDATASYNC:       {"fdatasync", byFD, durabletest.OpSyncFile},
		unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", byFD, unpromised},
		unix.SYS_SYNCFS:          {"syncfs", byFD, durabletest.OpSyncAll},
		unix.SYS_OPENAT:          {"openat", byPathAt, durabletest.OpAppend},
		unix.SYS_MKDIR:           {"mkdir", byPath, durabletest.OpMkdir},
		unix.SYS_MKDIRAT:         {"mkdirat", byPathAt, durabletest.OpMkdir},
		unix.SYS_UNLINK:          {"unlink", byPath, durabletest.OpRemove},
		unix.SYS_RMDIR:           {"rmdir", byPath, durabletest.OpRemove},
		unix.SYS_UNLINKAT:        {"unlinkat", byPathAt, durabletest.OpRemove},
		unix.SYS_RENAME:          {"rename", byPaths, durabletest.OpRename},
		unix.SYS_RENAMEAT:        {"renameat", byPathsAt, durabletest.OpRename},
		unix.SYS_RENAMEAT2:       {"renameat2", byPathsAt, durabletest.OpRename},
		unix.SYS_LINK:            {"link", byPaths, unmodelled},
		unix.SYS_LINKAT:          {"linkat", byPathsAt, unmodelled},
		unix.SYS_SYMLINK:         {"symlink", byPaths, unmodelled},
		unix.SYS_CHMOD:           {"chmod", byPath, unpromised},
		unix.SYS_FCHMOD:          {"fchmod", byFD, unpromised},
		unix.SYS_FCHMODAT:        {"fchmodat", byPathAt, unpromised},
		unix.SYS_UTIMENSAT:       {"utimensat", byPathAt, unpromised},
	}
}

// begun is a call in progress, with its object.
type begun struct {
	call
	path, from string // absolute; from is set for calls with two paths
	regs       syscall.PtraceRegs
}

// begin examines a starting call. It returns nil if the call changes nothing.
func (t *tracer) begin(tid int, regs *syscall.PtraceRegs) *begun {
	c, ok := t.calls[regs.Orig_rax]
	if !ok || c.name == "openat" && regs.Rdx&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return nil
	}
	b := &begun{call: c, regs: *regs}
	switch c.by {
	case byFD:
		b.path = descriptor(tid, regs.Rdi)
	case byPath:
		b.path = at(tid, unix.AT_FDCWD, regs.Rdi)
	case byPaths:
		b.from, b.path = at(tid, unix.AT_FDCWD, regs.Rdi), at(tid, unix.AT_FDCWD, regs.Rsi)
	case byPathAt:
		b.path = at(tid, int32(regs.Rdi), regs.Rsi)
	case byPathsAt:
		b.from, b.path = at(tid, int32(regs.Rdi), regs.Rsi), at(tid, int32(regs.Rdx), regs.R10)
	}
	if _, inside := t.below(b.path); !inside && (t.plan.FilesOnly || !b.tells()) {
		return nil
	}
	return b
}

// tells reports whether a call writes to a pipe, as an acknowledgement does.
func (b *begun) tells() bool {
	return strings.HasPrefix(b.path, "pipe:") && b.op == durabletest.OpAppend
}

// change returns what a call is about to do to the disk, or nil if a power failure could not undo it.
func (t *tracer) change(b *begun) (*durabletest.Op, error) {
	path, inside := t.below(b.path)
	if !inside || b.op == unpromised || b.op == unmodelled && strings.HasSuffix(path, ".lock") {
		return nil, nil
	}
	op := &durabletest.Op{Kind: b.op, Path: path}
	switch {
	case b.op == unmodelled:
		return nil, fmt.Errorf("cannot record a %s of %s", b.name, path)
	case b.op == durabletest.OpRename:
		if op.Path, inside = t.below(b.from); !inside {
			return nil, fmt.Errorf("%s comes to %s from outside", b.from, path)
		}
		op.To = path
	case b.op == durabletest.OpTruncate:
		op.Size = int64(b.regs.Rsi)
	case b.op == durabletest.OpSyncFile:
		if info, err := os.Stat(b.path); err == nil && info.IsDir() {
			op.Kind = durabletest.OpSyncDir
		}
	case b.name == "openat":
		_, err := os.Lstat(b.path)
		switch absent := errors.Is(err, fs.ErrNotExist); {
		case absent && b.regs.Rdx&unix.O_CREAT != 0:
			op.Perm = fs.FileMode(b.regs.R10).Perm()
		case !absent && b.regs.Rdx&unix.O_TRUNC != 0:
			op.Kind = durabletest.OpTruncate
		default:
			return nil, nil
		}
	}
	return op, nil
}

// below returns a path relative to the directory in which changes count.
func (t *tracer) below(path string) (string, bool) {
	rel, err := filepath.Rel(t.plan.Under, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || strings.HasSuffix(rel, " (deleted)") {
		return "", false
	}
	return rel, true
}

// descriptor returns the target of an open descriptor of a process.
func descriptor(tid int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd))) // on error "", which is outside
	return path
}

// at returns the path that a process refers to by a directory and a string.
func at(tid int, dir int32, name uint64) string {
	path := text(tid, uintptr(name))
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	if dir == unix.AT_FDCWD {
		base, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid)) // on error "", which is outside
		return filepath.Join(base, path)
	}
	return filepath.Join(descriptor(tid, uint64(dir)), path)
}

// text reads a C string from a stopped process.
func text(tid int, from uintptr) string {
	var out []byte
	word := make([]byte, 8)
	for from != 0 && len(out) < unix.PathMax {
		n, err := syscall.PtracePeekData(tid, from, word)
		if err != nil || n == 0 {
			break
		}
		if end := bytes.IndexByte(word[:n], 0); end >= 0 {
			return string(append(out, word[:end]...))
		}
		out = append(out, word[:n]...)
		from += uintptr(n)
	}
	return string(out)
}

// bytesAt copies memory of a stopped process.
func bytesAt(tid int, from uint64, n int64) ([]byte, error) {
	data := make([]byte, n)
	if n == 0 {
		return data, nil
	}
	local := []unix.Iovec{{Base: &data[0], Len: uint64(n)}}
	got, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(from), Len: int(n)}}, 0)
	if err == nil && int64(got) != n {
		err = fmt.Errorf("%d of %d bytes", got, n)
	}
	return data, err
}

// processOf returns the process of a thread, or 0 if it has ended.
func processOf(tid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	_, after, _ := bytes.Cut(status, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	id, _ := strconv.Atoi(string(bytes.TrimSpace(line))) // the kernel writes a valid number
	return id
}
