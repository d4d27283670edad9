package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/united-workforce/uwf/util/hostlist"
)

// started is a proxy and its address.
type started struct {
	*Proxy
	address string
}

func start(t *testing.T, o Options, allow ...string) started {
	t.Helper()
	list, err := hostlist.Parse(allow)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := started{New(list, o), l.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return p
}

func (p started) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c.(*net.TCPConn)
}

// ask sends bytes and returns everything that comes back.
func (p started) ask(t *testing.T, request string) string {
	t.Helper()
	c := p.dial(t)
	_, err := io.WriteString(c, request)
	require.NoError(t, err)
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(b)
}

func status(reply string) string {
	_, rest, _ := strings.Cut(reply, " ")
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// resolver answers every query with the address for its name.
func resolver(names map[string]string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			for {
				b := make([]byte, 2)
				if _, err := io.ReadFull(there, b); err != nil {
					return
				}
				b = make([]byte, int(b[0])<<8|int(b[1]))
				if _, err := io.ReadFull(there, b); err != nil {
					return
				}
				answer := answer(b, names)
				there.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
			}
		}()
		return here, nil
	}}
}

func answer(question []byte, names map[string]string) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	a, err := netip.ParseAddr(names[strings.TrimSuffix(q.Name.String(), ".")])
	h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	switch {
	case err != nil:
		m.RCode = dnsmessage.RCodeNameError
	case a.Is4() && q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: a.As4()}}}
	case a.Is6() && q.Type == dnsmessage.TypeAAAA:
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}}}
	}
	b, _ := m.Pack()
	return b
}

// public treats 127.0.0.1 as a public address.
func public(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }

// web is a server that echoes requests and counts them.
func web(t *testing.T) (port string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s host=%s body=%q te=%v x=%s auth=%q", r.Method, r.URL, r.Host, body, r.TransferEncoding, r.Header.Get("X"),
			r.Header.Get("Proxy-Authorization")+r.Header.Get("Secret"))
	}))
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':')+1:], asked
}

// TestWaysOut tests the ways out of a sandbox's network that use the proxy. P is the port of a server on this
// machine, listed as 127.0.0.1:P and as listed.test:P.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	port, _ := web(t)
	names := map[string]string{
		"listed.test": "127.0.0.1", "private.test": "10.1.2.3", "metadata.test": "169.254.169.254", "six.test": "fd00:ec2::254", "own.test": "127.0.0.2",
		"named.test": "127.0.0.2",
	}
	p := start(t, Options{Resolver: resolver(names), public: public}, "127.0.0.1:"+port, "*.listed.test:"+port, "listed.test:"+port, "api.example.com",
		"private.test:*", "metadata.test", "six.test", "own.test:*")
	for _, c := range []struct{ request, status string }{
		{"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT 1.1.1.1:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT [2606:4700::1111]:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT 127.0.0.2:P HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT localhost:P HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT api.example.com:22 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT evilapi.example.com:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT api.example.com.evil.example:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT evillisted.test:P HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT api.example.com\x00.evil.example:443 HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT api.example.com@evil.example:443 HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT api.example.com:443@evil.example:443 HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT 0x7f.1:P HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT 2130706433:P HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT http://127.0.0.1:P/ HTTP/1.1\r\n\r\n", "400"},
		{"GET http://evil.example/ HTTP/1.1\r\n\r\n", "403"},
		{"GET http://127.0.0.1:P@evil.example/ HTTP/1.1\r\n\r\n", "400"},
		{"GET http://evil.example\\@127.0.0.1:P/ HTTP/1.1\r\n\r\n", "400"},
		{"GET https://127.0.0.1:P/ HTTP/1.1\r\n\r\n", "400"},
		{"GET ftp://127.0.0.1:P/ HTTP/1.1\r\n\r\n", "400"},
		{"GET / HTTP/1.1\r\nHost: 127.0.0.1:P\r\n\r\n", "400"},
		{"GET //127.0.0.1:P/ HTTP/1.1\r\n\r\n", "400"},
		{"CONNECT private.test:443 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT metadata.test:80 HTTP/1.1\r\n\r\n", "403"},
		{"GET http://metadata.test/latest/meta-data HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT six.test:80 HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT own.test:P HTTP/1.1\r\n\r\n", "403"},
		{"CONNECT nowhere.listed.test:P HTTP/1.1\r\n\r\n", "502"},
		{"GET http://127.0.0.1:P/a HTTP/1.1\r\nHost: evil.example\r\n\r\n", "200"},
		{"GET http://listed.test:P HTTP/1.1\r\n\r\n", "200"},
		{"GET http://LISTED.test.:P?q HTTP/1.0\r\n\r\n", "200"},
	} {
		request := strings.NewReplacer(":P", ":"+port).Replace(c.request)
		if !strings.Contains(request, "Host:") { // HTTP/1.1 requires the header
			request = strings.Replace(request, "\r\n", "\r\nHost: x\r\n", 1)
		}
		require.Equal(t, c.status, status(p.ask(t, request)), c.request)
	}
	require.Contains(t, p.Refused(), Refusal{"evil.example", 443, 1})
	require.Contains(t, p.Refused(), Refusal{"evil.example", 80, 1})
	require.Contains(t, p.Refused(), Refusal{"metadata.test", 80, 2})
}

// A name may resolve to a non-public address if the address itself is listed as well.
func TestListedAddressBehindAName(t *testing.T) {
	t.Parallel()
	port, _ := web(t)
	names := map[string]string{"registry.test": "127.0.0.1"}
	none := func(netip.Addr) bool { return false }
	request := "GET http://registry.test:" + port + "/ HTTP/1.1\r\nHost: x\r\n\r\n"
	p := start(t, Options{Resolver: resolver(names), public: none}, "registry.test:*")
	require.Equal(t, "403", status(p.ask(t, request)))
	p = start(t, Options{Resolver: resolver(names), public: none}, "registry.test:*", "127.0.0.1:"+port)
	require.Equal(t, "200", status(p.ask(t, request)))
	p = start(t, Options{}, "localhost:"+port)
	require.Equal(t, "200", status(p.ask(t, strings.ReplaceAll(request, "registry.test", "localhost"))))
}

// TestPlainRequests checks that a server gets one request, for the host that was checked.
func TestPlainRequests(t *testing.T) {
	t.Parallel()
	port, asked := web(t)
	p := start(t, Options{Idle: 2 * time.Second}, "127.0.0.1:"+port)
	const second = "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	at := "http://127.0.0.1:" + port
	for _, c := range []struct{ head, body, want string }{ // want "": refused
		{"GET " + at + "/a?b HTTP/1.1\r\nHost: evil.example", second, "GET /a?b host=127.0.0.1:" + port + ` body="" te=[] x= auth=""`},
		{"POST " + at + "/ HTTP/1.1\r\nContent-Length: 3", "abc" + second, `body="abc" te=[]`},
		{"POST " + at + "/ HTTP/1.1\r\nTransfer-Encoding: chunked", "2;x=y\r\nab\r\n1\r\nc\r\n0\r\nA: b\r\n\r\n" + second, `body="abc" te=[chunked]`},
		{"POST " + at + "/ HTTP/1.1", second, `body="" te=[]`},
		{"PUT " + at + "/ HTTP/1.1\r\ncontent-length:  3 ", "abc", `body="abc"`},
		{"GET " + at + "/ HTTP/1.1\r\nX: 1\r\nProxy-Authorization: s\r\nConnection: keep-alive\r\nUpgrade: h2c", "", `x=1 auth=""`},
		{"POST " + at + "/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4", "abc", ""},
		{"POST " + at + "/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", "0\r\n\r\n", ""},
		{"POST " + at + "/ HTTP/1.1\r\nTransfer-Encoding : chunked", "0\r\n\r\n", ""},
		{"POST " + at + "/ HTTP/1.1\r\nContent-Length: -3", "abc", ""},
		{"GET " + at + "/ HTTP/1.1 HTTP/1.1", "", ""},
		{"GET " + at + "/", "", ""},
		{"GET\t" + at + "/ HTTP/1.1", "", ""},
		{"GET " + at + "/ HTTP/1.1" + strings.Repeat("\r\nA: "+strings.Repeat("b", maxHead/4), 6), "", ""},
	} {
		before := asked.Load()
		head := c.head
		if !strings.Contains(head, "Host:") {
			head += "\r\nHost: evil.example"
		}
		reply := p.ask(t, head+"\r\n\r\n"+c.body)
		if c.want == "" {
			require.Regexp(t, "^(400|431|501)$", status(reply), c.head)
			require.Equal(t, before, asked.Load(), c.head)
			continue
		}
		require.Equal(t, "200", status(reply), c.head)
		require.Contains(t, reply, c.want)
		require.Equal(t, before+1, asked.Load(), c.head)
		require.Equal(t, 1, strings.Count(reply, "HTTP/1."))
	}
	for _, body := range []string{"g\r\n", "-1\r\n", "ffffffffffffffff\r\n", "1\r\nab\r\n0\r\n\r\n", "1\nab", "0x1\r\na\r\n0\r\n\r\n", "\r\n"} {
		reply := p.ask(t, "POST "+at+"/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"+body)
		require.NotEqual(t, 2, strings.Count(reply, "HTTP/1."), body)
	}
	require.Empty(t, p.Refused())
}

// TestBodiesAreWhole checks that a body of many chunks and a large reply pass unchanged.
func TestBodiesAreWhole(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer s.Close()
	p := start(t, Options{}, s.Listener.Addr().String())
	text := strings.Repeat("0123456789abcdef", 1<<16)
	for _, body := range []io.Reader{strings.NewReader(text), io.MultiReader(strings.NewReader(text))} {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.address})}}
		res, err := client.Post(s.URL, "text/plain", body)
		require.NoError(t, err)
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, len(text), len(got))
		require.Equal(t, text, string(got))
	}
}

// A public address of this machine is rejected as well, because local services may trust it.
func TestOwnPublicAddress(t *testing.T) {
	t.Parallel()
	list, err := net.InterfaceAddrs()
	require.NoError(t, err)
	at := slices.IndexFunc(list, func(a net.Addr) bool {
		ip := a.(*net.IPNet).IP
		return ip.To4() != nil && !ip.IsLoopback()
	})
	if at < 0 {
		t.Skip("this machine has no address besides its loopback's")
	}
	names := map[string]string{"own.test": list[at].(*net.IPNet).IP.String()}
	p := start(t, Options{Resolver: resolver(names), public: func(netip.Addr) bool { return true }}, "own.test:*")
	require.Equal(t, "403", status(p.ask(t, "CONNECT own.test:80 HTTP/1.1\r\n\r\n")))
}
