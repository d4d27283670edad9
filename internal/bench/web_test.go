package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// site is a server with a home, and a browser that has opened its address.
type site struct {
	client  *http.Client
	address string
	open    io.Closer // its stdin
	pid     int
}

// web serves a home.
func (w *world) web(b testing.TB, p place) site {
	home := p.home
	return fixture(w, "web "+home, func() site {
		of := w.command(b, home, w.program("uwf-web"), "--format", "json", "--until-stdin-ends")
		cmd := exec.Command(of.Path, of.Args[1:]...)
		cmd.Dir, cmd.Env = of.Dir, of.Env
		open, err := cmd.StdinPipe() // it exits with this process
		require.NoError(b, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(b, err)
		cmd.Stderr = os.Stderr
		require.NoError(b, cmd.Start())
		var at struct{ Address string }
		require.NoError(b, json.NewDecoder(stdout).Decode(&at))
		jar, err := cookiejar.New(nil)
		require.NoError(b, err)
		s := site{pid: cmd.Process.Pid, client: &http.Client{Jar: jar}, address: at.Address, open: open}
		s.read(b, "")
		return s
	})
}

// read loads a page and returns the time to its first byte, in ms.
func (s site) read(b testing.TB, page string) float64 {
	address := s.address
	if page != "" {
		base, _, _ := strings.Cut(address, "?")
		address = base + page
	}
	begun := time.Now()
	answer, err := s.client.Get(address)
	require.NoError(b, err)
	_, err = io.ReadFull(answer.Body, make([]byte, 1))
	first := float64(time.Since(begun).Microseconds()) / 1000
	_, restErr := io.Copy(io.Discard, answer.Body)
	require.NoError(b, errors.Join(err, restErr, answer.Body.Close()))
	require.Equal(b, http.StatusOK, answer.StatusCode)
	return first
}

// firstByte measures the time to the first byte of the inbox.
func (w *world) firstByte(n int) side {
	return func(b testing.TB) float64 { return w.web(b, w.crowd(b, n)).read(b, "") }
}

// webPeak measures the server's peak memory after viewing all its pages, with 100,000 threads, one of which
// has 10,000 steps.
func (w *world) webPeak() row {
	r := versus("memory/uwf web among 100,000 threads", func(b testing.TB) float64 {
		most := 0.0
		for p, pages := range map[place][]string{
			w.among(b, 100_000): {"", "threads", "threads?q=nothing", "stats"}, w.chain(b, 10_000): {"", "stats", "thread/" + w.chain(b, 10_000).thread},
		} {
			s := w.web(b, p)
			for _, page := range pages {
				s.read(b, page)
			}
			most = max(most, s.peak(b))
		}
		return most
	}, 1, "150 MB", constant(150))
	r.unit = "MB"
	return r
}

// peak returns the server's peak memory, in MB.
func (s site) peak(b testing.TB) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	require.NoError(b, err, "only Linux tells how much memory another process has had")
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	_, err = fmt.Sscan(after, &kib)
	require.NoError(b, err)
	return kib / 1024
}
