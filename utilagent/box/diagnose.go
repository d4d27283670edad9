package box

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// Diagnosis is why programs get no namespaces on this machine. The zero value means that they do.
type Diagnosis struct {
	Why string
	Do  string // the line to type; "": there is none
}

// Works reports whether programs get namespaces.
func (d Diagnosis) Works() bool { return d.Why == "" }

// Diagnose starts the uwf-box that belongs to the program exe.
func Diagnose(exe string) Diagnosis {
	path := Find(exe)
	switch {
	case runtime.GOOS != "linux":
		return Diagnosis{Why: "only Linux has namespaces"}
	case path == "":
		return Diagnosis{Program + " is not installed", Install}
	}
	if err := Probe(path); err != nil {
		return explain(path, err, setting)
	}
	return Diagnosis{}
}

// The kernel's settings that decide about namespaces, below /proc/sys.
const (
	restricted  = "kernel/apparmor_restrict_unprivileged_userns"
	debianClone = "kernel/unprivileged_userns_clone"
	most        = "user/max_user_namespaces"
)

// setting is the value of a kernel's setting; "" if there is none.
func setting(name string) string {
	text, _ := os.ReadFile(filepath.Join("/proc/sys", filepath.FromSlash(name)))
	return strings.TrimSpace(string(text))
}

// loadProfile writes AppArmor's profile, which packaging/apparmor/uwf-box is with its reasons, and
// loads it.
const loadProfile = `printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile uwf-box /usr/bin/uwf-box flags=(unconfined) {\n  userns,\n` +
	`  include if exists <local/uwf-box>\n}\n' | sudo tee /etc/apparmor.d/uwf-box >/dev/null && sudo apparmor_parser --replace /etc/apparmor.d/uwf-box`

// explain finds the reason for a failed start of the uwf-box at a path.
func explain(path string, err error, setting func(string) string) Diagnosis {
	stage := ""
	if b := (*proc.BoxError)(nil); errors.As(err, &b) {
		stage = b.Stage
	}
	text := plaintext.Line(err.Error())
	switch {
	case stage == "version" || stage == "plan":
		return Diagnosis{path + " is not of the same release as uwf", Install}
	case setting(most) == "0":
		return Diagnosis{"user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000"}
	case setting(debianClone) == "0":
		return Diagnosis{"kernel.unprivileged_userns_clone is 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"}
	case setting(restricted) == "1" && path != Profile:
		install := "sudo install -m 755 " + plaintext.Word(path) + " " + Profile + " && "
		return Diagnosis{"AppArmor allows them only to " + Profile + " with its profile (" + text + ")", install + loadProfile}
	case setting(restricted) == "1":
		return Diagnosis{"AppArmor has no profile for " + Profile + " (" + text + ")", loadProfile}
	case stage == "namespaces" && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS)):
		return Diagnosis{"a container or the kernel refuses them (" + text + ")", `see "Enable namespaces" in docs/security.md`}
	}
	return Diagnosis{text, `see "Enable namespaces" in docs/security.md`}
}
