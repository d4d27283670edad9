package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// begun is a call of which the recorder waits for the end.
type begun struct {
	op     durabletest.Op
	buffer uintptr // of a write; what has been written is read when it ends
}

// begin notes what a call is about to change, nil if it changes nothing that a
// power cut could take: times, modes, and files that have no name any more.
func (t *tracer) begin(tid int, regs *syscall.PtraceRegs) (*begun, error) {
	b, err := t.describe(tid, regs)
	if b == nil || err != nil {
		return nil, err
	}
	var inside bool
	if b.op.Path, inside = t.below(b.op.Path); !inside {
		return nil, nil
	}
	if b.op.Kind == durabletest.OpRename {
		if b.op.To, inside = t.below(b.op.To); !inside {
			return nil, fmt.Errorf("%s leaves %s", b.op, t.plan.Under)
		}
	}
	return b, nil
}

func (t *tracer) describe(tid int, regs *syscall.PtraceRegs) (*begun, error) {
	op := func(kind durabletest.Kind, path string) *begun {
		return &begun{op: durabletest.Op{Kind: kind, Path: path}}
	}
	switch regs.Orig_rax {
	case unix.SYS_WRITE:
		b := op(durabletest.OpAppend, descriptor(tid, regs.Rdi))
		b.buffer = uintptr(regs.Rsi)
		return b, nil
	case unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_COPY_FILE_RANGE, unix.SYS_LINK, unix.SYS_LINKAT, unix.SYS_SYMLINK:
		return t.unknown(tid, regs)
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		path := descriptor(tid, regs.Rdi)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return op(durabletest.OpSyncDir, path), nil
		}
		return op(durabletest.OpSyncFile, path), nil
	case unix.SYS_SYNC_FILE_RANGE:
		return op(durabletest.OpStartSync, descriptor(tid, regs.Rdi)), nil
	case unix.SYS_SYNCFS:
		return op(durabletest.OpSyncAll, descriptor(tid, regs.Rdi)), nil
	case unix.SYS_OPENAT:
		return opening(tid, regs), nil
	case unix.SYS_FTRUNCATE:
		b := op(durabletest.OpTruncate, descriptor(tid, regs.Rdi))
		b.op.Size = int64(regs.Rsi)
		return b, nil
	case unix.SYS_RENAME:
		return renaming(at(tid, unix.AT_FDCWD, uintptr(regs.Rdi)), at(tid, unix.AT_FDCWD, uintptr(regs.Rsi))), nil
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return renaming(at(tid, int32(regs.Rdi), uintptr(regs.Rsi)), at(tid, int32(regs.Rdx), uintptr(regs.R10))), nil
	case unix.SYS_UNLINK, unix.SYS_RMDIR:
		return op(durabletest.OpRemove, at(tid, unix.AT_FDCWD, uintptr(regs.Rdi))), nil
	case unix.SYS_UNLINKAT:
		return op(durabletest.OpRemove, at(tid, int32(regs.Rdi), uintptr(regs.Rsi))), nil
	case unix.SYS_MKDIR:
		return op(durabletest.OpMkdir, at(tid, unix.AT_FDCWD, uintptr(regs.Rdi))), nil
	case unix.SYS_MKDIRAT:
		return op(durabletest.OpMkdir, at(tid, int32(regs.Rdi), uintptr(regs.Rsi))), nil
	}
	return nil, nil
}

// unknown is for calls that the model of a disk does not have. No program under
// test uses them on its files, but for the notes in locks, which no promise is
// about; one that does must not go unnoticed.
func (t *tracer) unknown(tid int, regs *syscall.PtraceRegs) (*begun, error) {
	c := t.calls[regs.Orig_rax]
	path, counts := c.about(tid, regs, t.plan.Under)
	if counts && !strings.HasPrefix(path, "pipe:") && !strings.HasSuffix(path, ".lock") {
		return nil, fmt.Errorf("cannot record a %s of %s", c.name, path)
	}
	return nil, nil
}

// opening is a call that makes a file or empties it; nil for any other.
func opening(tid int, regs *syscall.PtraceRegs) *begun {
	path := at(tid, int32(regs.Rdi), uintptr(regs.Rsi))
	_, err := os.Lstat(path)
	switch absent := errors.Is(err, fs.ErrNotExist); {
	case absent && regs.Rdx&unix.O_CREAT != 0:
		return &begun{op: durabletest.Op{Kind: durabletest.OpAppend, Path: path, Perm: fs.FileMode(regs.R10).Perm()}}
	case !absent && regs.Rdx&unix.O_TRUNC != 0:
		return &begun{op: durabletest.Op{Kind: durabletest.OpTruncate, Path: path}}
	}
	return nil
}

func renaming(from, to string) *begun {
	return &begun{op: durabletest.Op{Kind: durabletest.OpRename, Path: from, To: to}}
}

// end records a call that has succeeded.
func (t *tracer) end(tid int, b *begun, result int64) error {
	if result < 0 {
		return nil
	}
	if b.buffer != 0 {
		b.op.Data = make([]byte, result)
		if err := peek(tid, b.buffer, b.op.Data); err != nil {
			return fmt.Errorf("read what was written to %s: %w", b.op.Path, err)
		}
	}
	t.out.Ops = append(t.out.Ops, b.op)
	return nil
}

// peek copies memory of a stopped process.
func peek(tid int, from uintptr, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: from, Len: len(into)}}, 0)
	if err == nil && n != len(into) {
		err = fmt.Errorf("%d of %d bytes", n, len(into))
	}
	return err
}

// below is a path relative to the directory that is recorded.
func (t *tracer) below(path string) (string, bool) {
	rel, err := filepath.Rel(t.plan.Under, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") || strings.HasSuffix(rel, " (deleted)") {
		return "", false
	}
	return rel, true
}

// descriptor is what an open descriptor of a process stands for.
func descriptor(tid int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd))) // "" is below nothing
	return path
}

// at is a path that a process names by a directory and a string.
func at(tid int, dir int32, name uintptr) string {
	path := text(tid, name)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	if dir == unix.AT_FDCWD {
		base, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid)) // "" is below nothing
		return filepath.Join(base, path)
	}
	return filepath.Join(descriptor(tid, uint64(dir)), path)
}
