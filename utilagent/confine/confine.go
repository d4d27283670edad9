// Package confine holds back a program that a model steers, such as a command
// that it has written, with what a Linux kernel offers: Landlock, a filter of
// system calls (seccomp), and the removal of capabilities.
//
// All three bind the process that asks for them for good. So the agent starts its
// own program a second time, with a first argument that nobody types; that
// process binds itself and becomes the command (bind.Dispatch, which a main has to
// call first). What the command starts is bound too. Package bind stands apart
// because its library brings C along, which is loaded at every start.
//
// A bound program cannot write, make, rename or remove anything outside its
// directories, nor read what is hidden from it, nor gain rights (sudo does not
// work), nor look into processes that are not its own, so that the keys in the
// agent's environment stay there, nor share memory with such; from Landlock 6 on it cannot signal such
// processes either, and from 9 on it cannot talk to their sockets in the file
// system.
//
// It can use the network, and it can change what no kernel feature covers: mode,
// owner, times and attributes of files that are its user's, wherever they lie.
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

// ErrUnavailable means that programs cannot be confined here.
var ErrUnavailable error = unavailable{}

type unavailable struct{}

// Error implements error.
func (unavailable) Error() string { return "commands cannot be confined here" }

// OfMachine implements what [protocol.OfMachine] asks for.
func (unavailable) OfMachine() bool { return true }

// Profile says how much a program needs besides files.
type Profile string

// The profiles.
const (
	// Strict is for commands.
	Strict Profile = ""
	// Program is for whole agents of other people, which make sandboxes of
	// their own: they may make namespaces.
	Program Profile = "program"
)

// SharedMemory is where programs share memory, which is a file each. It is closed but
// for [Rules].IPC: all that a user's programs share lies there, and what is made stays.
const SharedMemory = "/dev/shm"

// Rules say what a program may do. The zero value lets it read everything and
// write nothing. All paths are absolute; those that do not exist are left out.
type Rules struct {
	Dirs  []string `json:"dirs"`            // may be written, with all that is below
	Files []string `json:"files,omitempty"` // may be written
	// Hidden are files and directories whose content cannot be read, nor
	// written, run or changed; the names in them can be listed. They hold also
	// below Dirs: then nothing new can be made in the directories above them.
	Hidden []string `json:"hidden,omitempty"`
	// Readable are exceptions from Hidden. So are Dirs and Files that lie in
	// what is hidden.
	Readable []string `json:"readable,omitempty"`
	// Guarded are files and directories that cannot be written, also below Dirs;
	// but Dirs and Files that lie in them can.
	Guarded []string `json:"guarded,omitempty"`

	Profile Profile `json:"profile,omitempty"`
	// Terminals lets a program make pseudoterminals and use them. Nothing tells those
	// from other people's, so that it can read what its user types, and write there.
	Terminals bool `json:"terminals,omitempty"`
	// IPC lets a program share memory with others of its user, and take what they
	// share: plain files in SharedMemory, and what System V's calls make.
	IPC bool `json:"ipc,omitempty"`
	// Keep names the capabilities that are not dropped, such as "chown"; see
	// [Capabilities].
	Keep []string `json:"keep,omitempty"`
	// NoUnixSockets refuses to make any. Below Landlock 9 nothing else keeps a
	// program from those of other processes.
	NoUnixSockets bool `json:"noUnixSockets,omitempty"`
	// Whole refuses to go on with less than all that this package can do; else
	// Landlock is enough.
	Whole bool `json:"whole,omitempty"`
}

// Command returns a command that becomes c once it has bound itself. exe is a
// program whose main calls bind.Dispatch.
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

// isTest tells a test's program by its name. One that does not call Dispatch
// would run its tests again, which would start it again, without end.
func isTest(exe string) bool {
	return strings.HasSuffix(strings.TrimSuffix(exe, ".exe"), ".test")
}

// Describe says what holds programs back on this system, for a person: such as
// "landlock 7, seccomp", or "none: …".
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

// HoldsSockets reports whether the kernel keeps a program from the sockets of others
// that have a path, such as Docker's.
func HoldsSockets() bool { return Level() >= 9 }

// Open says what is not held on this system, to be put behind [Describe]:
// "; not held: …", or "" where nothing is held anyway. noUnixSockets is as in [Rules].
func Open(noUnixSockets bool) string {
	level := Level()
	if level == 0 {
		return ""
	}
	var open []string
	if !HoldsSockets() && (!noUnixSockets || !Seccomp()) {
		open = append(open, "Unix sockets")
	}
	if level < 6 {
		open = append(open, "signals")
	}
	if level < 3 {
		open = append(open, "truncation of files elsewhere")
	}
	open = append(open, "modes and times of your own files", "git's settings while a command runs")
	return "; not held: " + strings.Join(open, ", ")
}

// capabilities are those that change what files root may use, with their numbers in Linux.
func capabilities() map[string]int {
	return map[string]int{"chown": 0, "dac_override": 1, "fowner": 3, "fsetid": 4, "net_bind_service": 10, "net_raw": 13}
}

// Capabilities are the names of the capabilities that [Rules.Keep] knows.
func Capabilities() []string { return slices.Sorted(maps.Keys(capabilities())) }

// CapabilityBits are those of names, as the kernel has them.
func CapabilityBits(names []string) (bits uint64) {
	for _, name := range names {
		if n, ok := capabilities()[name]; ok {
			bits |= 1 << n
		}
	}
	return bits
}
