// Package confine restricts programs that a model controls, such as commands it has written, with Linux
// kernel features: Landlock, a system call filter (seccomp), and dropping capabilities.
//
// These restrictions permanently apply to the process that requests them. So the agent starts its own program
// a second time with a hidden first argument; that process restricts itself and becomes the command
// (bind.Dispatch, which main has to call first). Child processes inherit the restrictions. Package bind is
// separate because its library pulls in cgo, which slows every start.
//
// A restricted program cannot write, create, rename or remove anything outside its directories, read hidden
// paths, gain privileges (sudo does not work), inspect processes other than its own, which protects keys in
// the agent's environment, or share memory with them. From Landlock 6 on it cannot signal them either, and
// from 9 on it cannot connect to their sockets in the file system.
//
// It can use the network, and it can change what no kernel feature covers: mode, owner, times and attributes
// of files that belong to its user, anywhere.
package confine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Argument is the hidden first argument.
const Argument = "__confined"

// ErrUnavailable reports that programs cannot be confined on this system.
var ErrUnavailable error = unavailable{}

type unavailable struct{}

func (unavailable) Error() string { return "no sandbox available here" }

// OfMachine reports that the error concerns this machine; see [protocol.OfMachine].
func (unavailable) OfMachine() bool { return true }

// Profile describes what a program needs in addition to files.
type Profile string

// Profiles.
const (
	// Strict is for commands.
	Strict Profile = ""
	// Program is for other vendors' agents, which have their own sandboxes: they can create namespaces.
	Program Profile = "program"
)

// SharedMemory is the directory with POSIX shared memory, one file per object. It is closed unless
// [Rules].IPC is set, because all programs of a user share it and its files persist.
const SharedMemory = "/dev/shm"

// Rules describe what a program may do. The zero value allows reading everything and writing nothing. All
// paths are absolute; missing ones are ignored.
type Rules struct {
	Dirs  []string `json:"dirs"`            // writable, with everything below
	Files []string `json:"files,omitempty"` // writable
	// Hidden lists files and directories whose content cannot be read, written, executed or changed; the
	// names in them can be listed. It applies even below Dirs: then nothing new can be created in their
	// parent directories.
	Hidden []string `json:"hidden,omitempty"`
	// Readable lists exceptions from Hidden. Dirs and Files inside hidden paths are exceptions as well.
	Readable []string `json:"readable,omitempty"`
	// Guarded lists files and directories that cannot be written, even below Dirs. Dirs and Files inside them
	// can.
	Guarded []string `json:"guarded,omitempty"`

	Profile Profile `json:"profile,omitempty"`
	// Terminals lets a program create and use pseudoterminals. The kernel cannot separate them from the
	// user's other terminals, so the program can read and write those as well.
	Terminals bool `json:"terminals,omitempty"`
	// IPC lets a program share memory with the user's other programs, through files in SharedMemory and
	// System V IPC.
	IPC bool `json:"ipc,omitempty"`
	// Keep lists the capabilities that are not dropped, such as "chown"; see [Capabilities].
	Keep []string `json:"keep,omitempty"`
	// NoUnixSockets forbids creating Unix sockets. Below Landlock 9, nothing else keeps a program from
	// connecting to other processes.
	NoUnixSockets bool `json:"noUnixSockets,omitempty"`
	// Whole fails unless everything in this package is available; otherwise Landlock is enough.
	Whole bool `json:"whole,omitempty"`
}

// Command returns a command that restricts itself and becomes c. exe is a program whose main calls
// bind.Dispatch.
func Command(exe string, r Rules, c proc.Command) (proc.Command, error) {
	if exe == "" || Level() == 0 || isTest(exe) {
		return proc.Command{}, ErrUnavailable
	}
	text, err := json.Marshal(r)
	if err != nil {
		return proc.Command{}, fmt.Errorf("confine: %w", err)
	}
	c.Args = append([]string{Argument, string(text), c.Path}, c.Args...)
	c.Path, c.Env = exe, append(slices.Clip(c.Env), env.CallMark)
	c.Init = r.Profile == Strict
	return c, nil
}

// isTest reports whether exe is a test binary, by its name. One that does not call Dispatch would run its
// tests again, without end.
func isTest(exe string) bool {
	return strings.HasSuffix(strings.TrimSuffix(exe, ".exe"), ".test")
}

// Describe describes the available restrictions, such as "landlock 7, seccomp" or "none: …".
func Describe() string {
	level := Level()
	if level == 0 {
		return "none: this system has no Landlock"
	}
	text := fmt.Sprintf("landlock %d", level)
	if Seccomp() {
		return text + ", seccomp"
	}
	return text + ", no seccomp"
}

// CanDenySockets reports whether the kernel can deny access to other programs' sockets in the file system, such
// as Docker's.
func CanDenySockets() bool { return Level() >= 9 }

// Open describes the gaps on this system, to be appended to [Describe]: "; not held: …", or "" if nothing is
// restricted anyway. noUnixSockets is as in [Rules].
func Open(noUnixSockets bool) string {
	level := Level()
	if level == 0 {
		return ""
	}
	var open []string
	if !CanDenySockets() && (!noUnixSockets || !Seccomp()) {
		open = append(open, "Unix sockets")
	}
	if level < 6 {
		open = append(open, "signals")
	}
	if level < 3 {
		open = append(open, "truncation of files elsewhere")
	}
	open = append(open, "modes and times of your files", "git's settings while a command runs")
	return "; not restricted: " + strings.Join(open, ", ")
}

// capabilities maps the capabilities that affect root's access to files to their numbers.
func capabilities() map[string]int {
	return map[string]int{"chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "net_bind_service": 10, "net_raw": 13}
}

// Capabilities returns the names that [Rules.Keep] accepts.
func Capabilities() []string { return slices.Sorted(maps.Keys(capabilities())) }

// CapabilityBits returns the kernel's bit mask for names.
func CapabilityBits(names []string) (bits uint64) {
	for _, name := range names {
		if n, ok := capabilities()[name]; ok {
			bits |= 1 << n
		}
	}
	return bits
}
