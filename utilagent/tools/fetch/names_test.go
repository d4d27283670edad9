package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/united-workforce/uwf/utilagent/internal/publicaddr"
)

// nameServer gives each name its addresses in turn, one per query, as a malicious name server may do.
type nameServer struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   map[string]int
}

// resolver queries the name server over a pipe in memory.
func (n *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go n.serve(there)
		return here, nil
	}}
}

// serve answers queries on a stream: two bytes of length, then the message.
func (n *nameServer) serve(c net.Conn) {
	defer c.Close()
	for {
		var head [2]byte
		if _, err := readFull(c, head[:]); err != nil {
			return
		}
		b := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := readFull(c, b); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b) != nil || len(m.Questions) != 1 {
			return
		}
		answer, err := n.answer(m)
		if err != nil {
			return
		}
		if _, err := c.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...)); err != nil {
			return
		}
	}
}

func readFull(c net.Conn, b []byte) (int, error) {
	for n := 0; n < len(b); {
		got, err := c.Read(b[n:])
		if n += got; err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func (n *nameServer) answer(m dnsmessage.Message) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := m.Questions[0]
	key := fmt.Sprint(q.Type, q.Name)
	turns := n.answers[strings.TrimSuffix(q.Name.String(), ".")]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	if len(turns) == 0 {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	for _, text := range turns[min(n.asked[key], len(turns)-1)] {
		a := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	n.asked[key]++
	return m.Pack()
}

// A name may resolve to any address, and to another one the next time, so the dialed address is checked. Here
// 127.0.0.1 counts as public, and every other address of this machine as private.
func TestNamesThatLeadAstray(t *testing.T) {
	t.Parallel()
	var secrets sync.Map
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String(), "127.0.0.1:") {
			secrets.Store(r.URL.Path, true)
		}
		fmt.Fprint(w, "the page of "+r.Host)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.FormValue("url"), http.StatusFound)
	})
	s := httptest.NewUnstartedServer(mux)
	all, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	require.NoError(t, s.Listener.Close())
	s.Listener = all
	s.Start()
	defer s.Close()
	_, port, err := net.SplitHostPort(all.Addr().String())
	require.NoError(t, err)
	n := &nameServer{asked: map[string]int{}, answers: map[string][][]string{
		"good.test": {{"127.0.0.1"}}, "bad.test": {{"127.0.0.2"}}, "mapped.test": {{"::ffff:127.0.0.2"}}, "six.test": {{"::1"}}, "zero.test": {{"0.0.0.0"}},
		"any.test": {{"::"}}, "metadata.test": {{"169.254.169.254"}}, "nat.test": {{"64:ff9b::7f00:1"}}, "several.test": {{"127.0.0.2", "10.1.2.3", "::1"}},
		"rebind.test": {{"127.0.0.1"}, {"127.0.0.2"}}, "either.test": {{"127.0.0.2", "127.0.0.1"}},
	}}
	f := Options{Allow: true, Resolver: n.resolver(), public: func(a netip.Addr) bool {
		return a.Unmap() == netip.MustParseAddr("127.0.0.1") || publicaddr.Is(a)
	}}
	r := fetching(t, f)
	get := func(host, path string) string {
		return call(t, r, "fetch_url", args{"url": "http://" + net.JoinHostPort(host, port) + path})
	}
	require.Contains(t, get("good.test", "/"), "the page of good.test")
	require.Contains(t, get("either.test", "/"), "the page of either.test", "an address that may be dialled is enough")
	for _, host := range []string{
		"bad.test", "mapped.test", "six.test", "zero.test", "any.test", "metadata.test", "nat.test", "several.test",
		"127.0.0.2", "0.0.0.0", "::", "::1", "::ffff:127.0.0.2", "0:0:0:0:0:ffff:7f00:2", "127.2", "0177.0.0.2", "2130706434",
	} {
		require.Regexp(t, "^Error: .*(is not an address of the public internet|no such host|could not be fetched)", get(host, "/private"), host)
		target := url.QueryEscape("http://" + net.JoinHostPort(host, port) + "/private")
		require.Regexp(t, "^Error: .*(is not an address of the public internet|no such host|could not be fetched)", get("good.test", "/to?url="+target), host)
	}
	require.Contains(t, get("rebind.test", "/"), "the page of rebind.test")
	require.Contains(t, get("rebind.test", "/private"), "127.0.0.2 is not an address of the public internet")
	require.Contains(t, get("nowhere.test", "/"), "Error: http://nowhere.test:"+port+"/ could not be fetched")
	secrets.Range(func(path, _ any) bool {
		t.Errorf("%v was asked for at a private address", path)
		return true
	})
}

// packed returns a compressed text of a given size.
func packed(size int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	block := bytes.Repeat([]byte("x"), 1<<20)
	for range size >> 20 {
		_, _ = z.Write(block) // writing to a buffer cannot fail
	}
	_ = z.Close()
	return b.Bytes()
}

// A server may be slow, send too much, or compress a lot into little.
func TestFetchIsBounded(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, ".")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed(12 << 20))
	})
	mux.HandleFunc("/deep", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<script>evil()</script>y"+strings.Repeat("<div><b><ul><li>x", 50_000))
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 2<<20))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	r := fetching(t, Options{Allow: true, Private: true})
	slow := fetching(t, Options{Allow: true, Private: true, Timeout: 100 * time.Millisecond})
	for _, path := range []string{"/drip", "/silent"} {
		require.Contains(t, call(t, slow, "fetch_url", args{"url": s.URL + path}), "could not be fetched: it took longer than 100ms. Try again later", path)
	}
	require.Contains(t, call(t, r, "fetch_url", args{"url": s.URL + "/bomb"}), "[only the first 5242880 bytes were read]")
	require.Contains(t, call(t, r, "fetch_url", args{"url": s.URL + "/deep"}), "/deep, 200 OK]\ny\nx\nx\n")
	require.Contains(t, call(t, r, "fetch_url", args{"url": s.URL + "/headers"}), "Error: ")
}
