package proxy

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hello returns a TLS client hello.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		here.Close()
	}()
	got, read, err := serverName(there)
	require.NoError(t, err)
	require.Equal(t, name, got)
	b, err := io.ReadAll(read)
	require.NoError(t, err)
	return b
}

// records splits a hello into records of at most size bytes.
func records(hello []byte, size int) []byte {
	const head, handshake = 5, 22
	var out []byte
	for message := hello[head:]; len(message) > 0; {
		n := min(size, len(message))
		out = append(append(out, handshake, 3, 1, byte(n>>8), byte(n)), message[:n]...)
		message = message[n:]
	}
	return out
}

// sni returns a server name extension.
func sni(name string) string {
	n := byte(len(name))
	return "\x00\x00\x00" + string([]byte{n + 5}) + "\x00" + string([]byte{n + 3}) + "\x00\x00" + string([]byte{n}) + name
}

// handmade returns a hello with these extensions, of less than 100 bytes.
func handmade(extensions string) string {
	message := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + "\x00\x02\x13\x01" + "\x01\x00"
	if extensions != "" {
		message += "\x00" + string([]byte{byte(len(extensions))}) + extensions
	}
	n := byte(len(message))
	return "\x16\x03\x01\x00" + string([]byte{n + 4}) + "\x01\x00\x00" + string([]byte{n}) + message
}

func TestServerName(t *testing.T) {
	t.Parallel()
	real := hello(t, "api.example.com")
	for _, c := range []struct {
		name, hello string
		want        string
		ok          bool
	}{
		{"real", string(real), "api.example.com", true},
		{"without-a-name", string(hello(t, "")), "", true},
		{"records-of-some-bytes", string(records(real, 100)), "api.example.com", true},
		{"cut", string(real[:len(real)-1]), "", false},
		{"more-in-the-record", string(records(append(slices.Clone(real), 0), 1<<14)), "", false},
		{"empty-record", "\x16\x03\x01\x00\x00" + string(real), "", false},
		{"no-extensions", handmade(""), "", true},
		{"handmade", handmade(sni("a.test")), "a.test", true},
		{"two-names", handmade(sni("a.test") + sni("b.test")), "", false},
		{"trailing-dot", handmade(sni("a.test.")), "", false},
		{"empty-name", handmade(sni("")), "", false},
		{"cut-extension", handmade(sni("a.test")[:8]), "", false},
		{"two-names-in-a-list", handmade("\x00\x00\x00\x0c\x00\x0a\x00\x00\x02aa\x00\x00\x02bb"), "", false},
		{"an-alert", "\x15\x03\x01\x00\x02\x01\x00", "", false},
		{"SSL-2", "\x80\x2e\x01\x00\x02" + strings.Repeat("\x00", 44), "", false},
		{"plain-text", "GET / HTTP/1.1\r\n\r\n", "", false},
		{"SSH", "SSH-2.0-x\r\n", "", false},
		{"nothing", "", "", false},
		{"too-long", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 0xffff), "", false},
	} {
		got, read, err := serverName(strings.NewReader(c.hello))
		require.Equal(t, c.ok, err == nil, c.name)
		require.Equal(t, c.want, got, c.name)
		if c.ok {
			b, err := io.ReadAll(read)
			require.NoError(t, err)
			require.Equal(t, c.hello, string(b), c.name)
		}
	}
}

// TestTLSNames checks that the name in the hello must match the allowed host.
func TestTLSNames(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "reached") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	address := s.Listener.Addr().(*net.TCPAddr)
	at := ":" + strconv.Itoa(address.Port)
	names := map[string]string{"listed.test": "127.0.0.1", "other.test": "127.0.0.1"}
	o := Options{Resolver: resolver(names), public: public, tlsPort: uint16(address.Port), Heads: 5 * time.Second}
	p := start(t, o, "listed.test"+at, "other.test"+at, "127.0.0.1"+at)
	for _, c := range []struct {
		target, name string
		ok           bool
	}{
		{"listed.test", "listed.test", true},
		{"LISTED.test.", "listed.test", true},
		{"listed.test", "LISTED.TEST", true},
		{"listed.test", "evil.test", false},
		{"listed.test", "other.test", false},
		{"listed.test", "xlisted.test", false},
		{"listed.test", "", false},
		{"127.0.0.1", "", true},
		{"127.0.0.1", "listed.test", false},
	} {
		c2 := p.dial(t)
		_, err := io.WriteString(c2, "CONNECT "+c.target+at+" HTTP/1.1\r\n\r\n")
		require.NoError(t, err)
		b := make([]byte, len(established))
		_, err = io.ReadFull(c2, b)
		require.NoError(t, err)
		client := tls.Client(c2, &tls.Config{ServerName: c.name, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		err = client.Handshake()
		require.Equal(t, c.ok, err == nil, "%s %s: %v", c.target, c.name, err)
		if c.ok {
			_, err = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			require.NoError(t, err)
			reply, err := io.ReadAll(client)
			require.NoError(t, err)
			require.Contains(t, string(reply), "reached")
		}
	}
	require.Equal(t, []Refusal{
		{"evil.test", address.Port, 1}, {"other.test", address.Port, 1}, {"xlisted.test", address.Port, 1}, {"listed.test", address.Port, 2},
	}, p.Refused())
}

// TestHelloInPieces checks that the proxy waits for a complete hello and passes nothing before it has checked
// it.
func TestHelloInPieces(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	got := make(chan string, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "banner") // a server that speaks first gets nothing through
			b, _ := io.ReadAll(c)
			got <- string(b)
			c.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	o := Options{Resolver: resolver(map[string]string{"listed.test": "127.0.0.1"}), public: public, tlsPort: uint16(port), Heads: 2 * time.Second}
	p := start(t, o, "listed.test:*")
	whole := records(hello(t, "listed.test"), 100)
	for _, c := range []struct {
		send  []byte
		whole bool
	}{{whole, true}, {whole[:len(whole)-1], false}} {
		conn := p.dial(t)
		_, err = io.WriteString(conn, "CONNECT listed.test:"+strconv.Itoa(port)+" HTTP/1.1\r\n\r\n")
		require.NoError(t, err)
		for i := 0; i < len(c.send); i += 50 {
			_, err := conn.Write(c.send[i:min(i+50, len(c.send))])
			require.NoError(t, err)
		}
		if c.whole {
			require.NoError(t, conn.CloseWrite())
		}
		reply, err := io.ReadAll(conn)
		require.NoError(t, err)
		if c.whole {
			require.Equal(t, established+"banner", string(reply))
			require.Equal(t, string(whole), <-got)
		} else {
			require.Equal(t, established, string(reply))
			require.Empty(t, <-got)
		}
	}
}
