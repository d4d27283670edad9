package box

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	refused := func(stage string, err error) error { return &proc.BoxError{Stage: stage, Err: err} }
	const elsewhere = "/home/me/go bin/uwf-box"
	for name, c := range map[string]struct {
		path     string
		err      error
		settings map[string]string
		do       string
	}{
		"another release":                {Profile, refused("version", errors.New("x")), nil, Install},
		"a release before the plan":      {Profile, refused("plan", errors.New("x")), nil, Install},
		"none allowed":                   {Profile, refused("namespaces", syscall.ENOSPC), map[string]string{most: "0"}, "sudo sysctl -w user.max_user_namespaces=15000"},
		"Debian's setting":               {Profile, refused("namespaces", syscall.EPERM), map[string]string{debianClone: "0"}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		"AppArmor":                       {Profile, refused("mount", syscall.EACCES), map[string]string{restricted: "1"}, loadProfile},
		"AppArmor, elsewhere":            {elsewhere, refused("mount", syscall.EACCES), map[string]string{restricted: "1"}, "sudo install -m 755 '" + elsewhere + "' /usr/bin/uwf-box && " + loadProfile},
		"AppArmor allows it to everyone": {elsewhere, refused("namespaces", syscall.EPERM), map[string]string{restricted: "0", most: "100"}, `see "Enable namespaces" in docs/security.md`},
		"a container":                    {Profile, refused("namespaces", syscall.EPERM), nil, `see "Enable namespaces" in docs/security.md`},
		"no program":                     {Profile, errors.New("x"), nil, `see "Enable namespaces" in docs/security.md`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := explain(c.path, c.err, func(name string) string { return c.settings[name] })
			require.Equal(t, c.do, got.Do)
			require.False(t, got.Works())
			require.NotContains(t, got.Do, "\n")
		})
	}
	require.Contains(t, explain(Profile, refused("mount", errors.New("a\x1b[31m")), func(string) string { return "" }).Why, "a")
	require.NotContains(t, explain(Profile, refused("mount", errors.New("a\x1b[31m")), func(string) string { return "" }).Why, "\x1b")
}

// A program that uses up what the kernel allows doesn't take the namespaces away from another one.
func TestPassing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		max     string // number of namespaces that are allowed
		passing bool
	}{
		"none is allowed":     {syscall.ENOSPC, "0", false},
		"all are used":        {syscall.ENOSPC, "100", true},
		"too many processes":  {syscall.EAGAIN, "100", true},
		"no memory":           {syscall.ENOMEM, "100", true},
		"too many open files": {syscall.EMFILE, "100", true},
		"killed or slow":      {proc.ErrBoxSilent, "100", true},
		"a container":         {syscall.EPERM, "100", false},
		"an old kernel":       {syscall.ENOSYS, "", false},
	} {
		got := passing(&proc.BoxError{Stage: "namespaces", Err: &os.PathError{Op: "fork/exec", Err: c.err}}, func(string) string { return c.max })
		require.Equal(t, c.passing, got, name)
	}
}

// The command printed by doctor writes the same profile as the packages.
func TestProfile(t *testing.T) {
	t.Parallel()
	packaged, err := os.ReadFile("../../packaging/apparmor/uwf-box")
	require.NoError(t, err)
	text, _, found := strings.Cut(strings.TrimPrefix(loadProfile, "printf '"), "'")
	require.True(t, found)
	require.Equal(t, rules(string(packaged)), rules(strings.ReplaceAll(text, `\n`, "\n")))
}

// rules returns the lines of a profile without comments.
func rules(profile string) (out []string) {
	for line := range strings.Lines(profile) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// Where AppArmor allows namespaces only to the program of its profile, that program is preferred.
func TestFindWhereAppArmorRestricts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside, profile := filepath.Join(dir, Program), filepath.Join(dir, "usr", Program)
	require.NoError(t, os.Mkdir(filepath.Dir(profile), 0o755))
	for _, path := range []string{beside, profile} {
		require.NoError(t, os.WriteFile(path, nil, 0o755))
	}
	exe := filepath.Join(dir, "uwf")
	require.Equal(t, beside, find(exe, profile, false))
	require.Equal(t, profile, find(exe, profile, true))
	require.NoError(t, os.Remove(profile))
	require.Equal(t, beside, find(exe, profile, true))
	require.NoError(t, os.Remove(beside))
	require.Empty(t, find(exe, profile, true))
	require.Empty(t, find("", profile, true))
}
