package bench

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// site is a server of a home, and a browser that has opened its address.
type site struct {
	client  *http.Client
	address string
	open    io.Closer // its stdin
}

// web serves a home with n threads of one step each, which nobody has finished.
func (w *world) web(b testing.TB, n int) site {
	home := w.crowd(b, n).home
	return fixture(w, "web "+home, func() site {
		of := w.command(b, home, w.program("uwf-web"), "--format", "json", "--until-stdin-ends")
		cmd := exec.Command(of.Path, of.Args[1:]...)
		cmd.Dir, cmd.Env = of.Dir, of.Env
		open, err := cmd.StdinPipe() // it ends with this process
		require.NoError(b, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(b, err)
		cmd.Stderr = os.Stderr
		require.NoError(b, cmd.Start())
		var at struct{ Address string }
		require.NoError(b, json.NewDecoder(stdout).Decode(&at))
		jar, err := cookiejar.New(nil)
		require.NoError(b, err)
		s := site{client: &http.Client{Jar: jar}, address: at.Address, open: open}
		s.read(b)
		return s
	})
}

// read loads the inbox, and returns how long its first byte took, in ms.
func (s site) read(b testing.TB) float64 {
	begun := time.Now()
	answer, err := s.client.Get(s.address)
	require.NoError(b, err)
	_, err = io.ReadFull(answer.Body, make([]byte, 1))
	first := float64(time.Since(begun).Microseconds()) / 1000
	_, restErr := io.Copy(io.Discard, answer.Body)
	require.NoError(b, errors.Join(err, restErr, answer.Body.Close()))
	require.Equal(b, http.StatusOK, answer.StatusCode)
	return first
}

// firstByte is how long the first byte of the inbox takes.
func (w *world) firstByte(n int) side {
	return func(b testing.TB) float64 { return w.web(b, n).read(b) }
}
