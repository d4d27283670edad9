//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// host acts as an unrelated program of the user: it listens, shares memory, has a terminal, a file and a
// secret, prints their locations, and exits when its input ends.
func host(dir string, stdin io.Reader, stdout io.Writer) error {
	name := filepath.Base(dir) + "-" + strconv.Itoa(os.Getpid())
	if _, err := net.Listen("unix", "@uwf-attack-"+name); err != nil {
		return err
	}
	temporary := "/tmp/uwf-attack-" + name
	defer os.Remove(temporary)
	for _, path := range []string{filepath.Join(dir, "socket"), filepath.Join(dir, "../home/.gnupg/S.gpg-agent"), temporary} {
		if _, err := net.Listen("unix", path); err != nil {
			return err
		}
	}
	if _, err := net.ListenPacket("unixgram", filepath.Join(dir, "datagrams")); err != nil {
		return err
	}
	shm := "/dev/shm/uwf-attack-" + name
	if err := os.WriteFile(shm, []byte("canary-memory\n"), 0o600); err != nil {
		return err
	}
	defer os.Remove(shm)
	key := 0x75770000 + os.Getpid()%0xffff
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		return err
	}
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	segment, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(segment, "canary-segment")
	p, err := unix.BytePtrFromString("uwf-attack-" + name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDWR|unix.O_CREAT, 0o600, 0, 0, 0); errno == 0 {
		defer unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	}
	terminal, slave, err := terminals()
	if err != nil {
		return err
	}
	defer terminal.Close()
	secret, err := os.Open(filepath.Join(dir, "held"))
	if err != nil {
		return err
	}
	text := []byte("canary-process-memory")
	fmt.Fprintf(stdout, "HOSTPID=%d HOSTFD=%d HOSTADDR=%#x HOSTKEY=%d HOSTNAME_=%s HOSTTTY=%s\n",
		os.Getpid(), secret.Fd(), uintptr(unsafe.Pointer(&text[0])), key, name, slave)
	_, _ = stdin.Read(make([]byte, 1))
	runtime.KeepAlive(text)
	return nil
}

func terminals() (*os.File, string, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, "", err
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, "", err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	return master, "/dev/pts/" + strconv.Itoa(n), err
}

// ptys communicates over a private terminal, as script and expect do.
func ptys([]string) error {
	master, name, err := terminals()
	if err != nil {
		return err
	}
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if _, err := slave.WriteString("hello\n"); err != nil {
		return err
	}
	text := make([]byte, 5)
	if _, err := master.Read(text); err != nil || string(text) != "hello" {
		return errors.Join(fmt.Errorf("read %q", text), err)
	}
	return nil
}

// listen communicates over a socket in the file system.
func listen(a []string) error {
	l, err := net.Listen("unix", a[0])
	if err != nil {
		return err
	}
	defer l.Close()
	return reach("unix", a[0])
}

// locks uses a file as a database does: byte-range locks, shared memory, a sync and a rename.
func locks(a []string) error {
	f, err := os.OpenFile(a[0], os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: 0x40000000, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Len: 8}); err != nil {
		return err
	}
	if err := f.Truncate(4096); err != nil {
		return err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, "page")
	return errors.Join(unix.Msync(m, unix.MS_SYNC), f.Sync(), os.Rename(a[0], a[0]+"-wal"))
}
