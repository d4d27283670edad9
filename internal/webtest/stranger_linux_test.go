//go:build browser

package webtest

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another user of the machine can find the port, and nothing more: no readable process arguments, file or
// environment contains a secret, and that user gets no page.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: another user of the machine. Only root can become one.")
	}
	const nobody = 65534
	w := newWorld(t)
	for dir := w.home; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // like many home directories; uwf's own is private
	}
	id := w.uwf("run", "./release.yaml", "-p", "a secret release")
	w.serve("--actions")
	w.open("thread/" + id)
	secrets := []string{strings.Split(w.base, "/")[3], evaluate[string](w, `document.querySelector('[name="token"]').value`)}
	stranger := func(script string, args ...string) string {
		cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, _ := cmd.CombinedOutput() // a refusal is expected
		return string(out)
	}
	require.Equal(t, "65534\n", stranger("id -u"))
	web := strconv.Itoa(w.server)
	watched := stranger(`for i in 1 2 3; do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' '; done`)
	require.Contains(t, watched, "uwf", "he sees the processes")
	for _, secret := range append(secrets, id) {
		require.Greater(t, len(secret), 20)
		require.NotContains(t, watched, secret)
	}
	require.NotContains(t, stranger(`cat "/proc/$1/environ"; ls -l "/proc/$1/fd"`, web), "UWF_HOME")
	home := filepath.Join(w.home, "uwf")
	require.Empty(t, stranger(`find "$1" -mindepth 1 2>/dev/null`, home))
	require.Contains(t, stranger(`ls "$1"; cat "$1/config.yaml"`, home), "Permission denied")
	require.Empty(t, stranger(`find "$1" /tmp -user root -newer "$1" -type f -readable -exec grep -lE "$2" {} + 2>/dev/null`, w.home, strings.Join(secrets, "|")))

	site := strings.Join(strings.Split(w.base, "/")[:3], "/")
	for path, want := range map[string]int{"/": http.StatusNotFound, "/thread/" + id: http.StatusNotFound, "/answer/" + id: http.StatusNotFound, "/" + secrets[0] + "/": http.StatusForbidden} {
		answer, err := http.Get(site + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode, path)
	}
	w.quiet()
}
