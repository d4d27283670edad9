package trace

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kind says where a call's object is found.
type kind int

const (
	byFD       kind = iota // first argument is a descriptor
	byWriteFD              // the same, and the third is a length that can be halved
	byPath                 // first argument is a path
	byPathAt               // first is a directory, second a path
	byOpen                 // openat that makes or empties a file
	byRenameAt             // as byPathAt; the target is what counts
)

// changing are the calls that change a disk. What they are named after is in
// syscalls(2).
func changing() map[uint64]call {
	return map[uint64]call{
		unix.SYS_WRITE: {"write", byWriteFD}, unix.SYS_PWRITE64: {"pwrite64", byWriteFD},
		unix.SYS_WRITEV: {"writev", byFD}, unix.SYS_PWRITEV: {"pwritev", byFD}, unix.SYS_COPY_FILE_RANGE: {"copy_file_range", byFD},
		unix.SYS_FSYNC: {"fsync", byFD}, unix.SYS_FDATASYNC: {"fdatasync", byFD}, unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", byFD},
		unix.SYS_SYNCFS: {"syncfs", byFD}, unix.SYS_FTRUNCATE: {"ftruncate", byFD}, unix.SYS_FALLOCATE: {"fallocate", byFD},
		unix.SYS_FCHMOD: {"fchmod", byFD},
		unix.SYS_OPENAT: {"openat", byOpen},
		unix.SYS_RENAME: {"rename", byPath}, unix.SYS_LINK: {"link", byPath}, unix.SYS_SYMLINK: {"symlink", byPath},
		unix.SYS_UNLINK: {"unlink", byPath}, unix.SYS_MKDIR: {"mkdir", byPath}, unix.SYS_RMDIR: {"rmdir", byPath},
		unix.SYS_TRUNCATE: {"truncate", byPath}, unix.SYS_CHMOD: {"chmod", byPath},
		unix.SYS_RENAMEAT: {"renameat", byRenameAt}, unix.SYS_RENAMEAT2: {"renameat2", byRenameAt}, unix.SYS_LINKAT: {"linkat", byRenameAt},
		unix.SYS_UNLINKAT: {"unlinkat", byPathAt}, unix.SYS_MKDIRAT: {"mkdirat", byPathAt},
		unix.SYS_FCHMODAT: {"fchmodat", byPathAt}, unix.SYS_UTIMENSAT: {"utimensat", byPathAt},
	}
}

type call struct {
	name string
	kind kind
}

// about returns what a call in progress is about, and whether it counts.
func (c call) about(tid int, regs *syscall.PtraceRegs, under string) (string, bool) {
	var path string
	switch c.kind {
	case byFD, byWriteFD:
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(regs.Rdi)))
		if strings.HasPrefix(path, "pipe:") {
			return path, c.kind == byWriteFD
		}
	case byOpen:
		if regs.Rdx&(unix.O_CREAT|unix.O_TRUNC) == 0 {
			return "", false
		}
		path = text(tid, uintptr(regs.Rsi))
	case byPath:
		path = text(tid, uintptr(regs.Rdi))
	case byPathAt:
		path = text(tid, uintptr(regs.Rsi))
	case byRenameAt:
		path = text(tid, uintptr(regs.R10))
	}
	return path, strings.HasPrefix(path, under)
}

// text reads a C string of a stopped process.
func text(tid int, at uintptr) string {
	var out []byte
	word := make([]byte, 8)
	for at != 0 && len(out) < unix.PathMax {
		n, err := syscall.PtracePeekData(tid, at, word)
		if err != nil || n == 0 {
			break
		}
		for _, c := range word[:n] {
			if c == 0 {
				return string(out)
			}
			out = append(out, c)
		}
		at += uintptr(n)
	}
	return string(out)
}
