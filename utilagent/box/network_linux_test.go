package box_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/programtest"
)

// waysOut tries to reach various targets from inside and prints "open" or "closed" for each. host is a server
// on the machine's loopback.
func waysOut(host string) {
	port := host[strings.LastIndexByte(host, ':')+1:]
	for _, way := range []struct {
		name string
		try  func() error
	}{
		{"host's-loopback", dial("tcp", host)},
		{"outer-address", dial("tcp", "1.1.1.1:443")},
		{"IPv6", dial("tcp", "[2606:4700::1111]:443")},
		{"UDP", sendUDP},
		{"names", func() error { _, err := net.LookupHost("example.com"); return err }},
		{"ICMP", open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{"packets", open(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{"vsock", func() error { return connectVsock() }},
		{"host's-abstract-socket", dial("unix", "@uwf-ways-out-"+port)},
		{"host's-socket-in-/tmp", dial("unix", os.Getenv("SOCKET"))},
		{"docker", dial("unix", "/run/docker.sock")},
		{"D-Bus", dial("unix", "/run/dbus/system_bus_socket")},
		{"tun", func() error { _, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); return err }},
		{"namespace-of-pid-1", setns},
		{"namespace-of-its-own", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"listed-by-proxy", ask("CONNECT " + host + " HTTP/1.1\r\n\r\n")},
		{"listed-by-URL", ask("GET http://" + host + "/ HTTP/1.1\r\n\r\n")},
		{"unlisted-by-proxy", ask("CONNECT evil.example:443 HTTP/1.1\r\n\r\n")},
		{"address-by-proxy", ask("CONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n")},
		{"other-port-by-proxy", ask("CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n")},
		{"unlisted-by-URL", ask("GET http://evil.example/ HTTP/1.1\r\n\r\n")},
		{"ends-alike", ask("CONNECT evil" + host + " HTTP/1.1\r\n\r\n")},
		{"NUL", ask("CONNECT 127.0.0.1\x00.evil.example:443 HTTP/1.1\r\n\r\n")},
	} {
		said := "open"
		if err := way.try(); err != nil {
			said = "closed"
		}
		fmt.Printf("%s: %s\n", way.name, said)
	}
}

func dial(network, address string) func() error {
	return func() error {
		c, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err
	}
}

func open(family, kind, protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
}

func sendUDP() error {
	c, err := net.Dial("udp", "8.8.8.8:53")
	if err != nil {
		return err
	}
	_, err = c.Write([]byte("x"))
	return errors.Join(err, c.Close())
}

func connectVsock() error {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_HOST, Port: 1024})
}

func setns() error {
	f, err := os.Open("/proc/1/ns/net")
	if err != nil {
		return err
	}
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// ask sends a request to the proxy and fails if it is refused.
func ask(request string) func() error {
	return func() error {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", plan.ListenPort), 2*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(c, request)
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || !strings.HasSuffix(string(b), "200") {
			return errors.Join(err, errors.New(string(b)))
		}
		return nil
	}
}

// TestWaysOut tests the ways out of a private network; only those to the listed host are open.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	defer server.Close()
	host := server.Listener.Addr().String()
	abstract, err := net.Listen("unix", "@uwf-ways-out-"+host[strings.LastIndexByte(host, ':')+1:])
	require.NoError(t, err)
	defer abstract.Close()
	exe, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(exe)
	require.NoError(t, err)
	programtest.Write(t, filepath.Join(s.work, "attacker"), text)
	dir, err := os.MkdirTemp("/tmp", "uwf") // socket paths must be short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer socket.Close()
	for _, c := range []struct {
		network protocol.Network
		open    []string
	}{
		{protocol.Network{protocol.NetworkNone}, nil},
		{protocol.Network{host}, []string{"listed-by-proxy", "listed-by-URL"}},
	} {
		s.request.Network = c.network
		out, status, said := s.run("SOCKET=" + filepath.Join(dir, "s") + " ./attacker ways-out " + host)
		require.Zero(t, status.Code, out)
		var open []string
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Len(t, lines, 23, out)
		for _, line := range lines {
			name, how, _ := strings.Cut(line, ": ")
			if how != "closed" {
				open = append(open, name)
			}
		}
		require.Equal(t, c.open, open)
		if c.open == nil {
			require.Empty(t, said)
		} else {
			require.Len(t, said, 1)
			require.Contains(t, said[0], "evil.example:443")
			require.Contains(t, said[0], "evil.example:80")
		}
	}
}

// By default the program has the machine's network, and no proxy.
func TestAllNetwork(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	out, _, _ := s.run("env | grep -ci _proxy; cat /proc/net/dev | grep -c :")
	require.Equal(t, "0", strings.Fields(out)[0])
	s.request.Network = protocol.Network{"a.example"}
	out, _, _ = s.run("env | grep -ci _proxy=http://127.0.0.1:3128; env | grep NODE_USE; grep -c : /proc/net/dev; ls -l /proc/self/fd | grep -c socket")
	require.Equal(t, []string{"6", "NODE_USE_ENV_PROXY=1", "1", "0"}, strings.Fields(out))
}
