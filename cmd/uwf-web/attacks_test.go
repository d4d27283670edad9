//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// raw sends a request verbatim and returns the response.
func raw(t *testing.T, to, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", to)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(body)
}

// Malformed requests get no page, no file and no injected header, even with the cookie.
func TestRequestsAsNoBrowserSendsThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	id := s.start("x")
	at := s.http.Listener.Addr().String()
	base, cookie := s.guard.base, "Cookie: "+cookieName+"="+s.guard.cookieFor("")+"\r\n"
	for name, c := range map[string]struct {
		line, header string
		want         []int
	}{
		"a whole address of another host": {"GET http://evil.example" + base + " HTTP/1.1", "Host: " + at + "\r\n", []int{421}},
		"two hosts":                       {"GET " + base + " HTTP/1.1", "Host: " + at + "\r\nHost: evil.example\r\n", []int{400}},
		"no host":                         {"GET " + base + " HTTP/1.1", "", []int{400}},
		"an old protocol without a host":  {"GET " + base + " HTTP/1.0", "", []int{421}},
		"a host with an end":              {"GET " + base + " HTTP/1.1", "Host: " + at + "\x00evil\r\n", []int{400}},
		"up and out":                      {"GET " + base + "../../../../etc/passwd HTTP/1.1", "Host: " + at + "\r\n", []int{307, 404}},
		"up and out, hidden":              {"GET " + base + "thread/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1", "Host: " + at + "\r\n", []int{404}},
		"to the assets' sources":          {"GET " + base + "assets/web.html HTTP/1.1", "Host: " + at + "\r\n", []int{404}},
		"lines in the address":            {"GET " + base + "threads?q=%0d%0aSet-Cookie:%20a=b HTTP/1.1", "Host: " + at + "\r\n", []int{200}},
		"lines in a thread":               {"GET " + base + "thread/%0d%0aSet-Cookie:%20a=b HTTP/1.1", "Host: " + at + "\r\n", []int{404}},
		"a piece of a page":               {"GET " + base + "thread/" + id + " HTTP/1.1", "Host: " + at + "\r\nRange: bytes=0-10,20-30\r\n", []int{200}},
		"a length that is none":           {"POST " + base + "thread/" + id + "/stop HTTP/1.1", "Host: " + at + "\r\nContent-Length: 5\r\nContent-Length: 6\r\n", []int{400}},
		"two lengths":                     {"POST " + base + "thread/" + id + "/stop HTTP/1.1", "Host: " + at + "\r\nOrigin: http://" + at + "\r\nTransfer-Encoding: chunked, x\r\n", []int{400, 501}},
		"another's way to say the method": {"GET " + base + "thread/" + id + "/stop?token=" + s.guard.form + " HTTP/1.1", "Host: " + at + "\r\nX-HTTP-Method-Override: POST\r\nOrigin: http://" + at + "\r\n", []int{404, 405}},
		"the token in the address":        {"POST " + base + "thread/" + id + "/stop?token=" + s.guard.form + " HTTP/1.1", "Host: " + at + "\r\nOrigin: http://" + at + "\r\nContent-Length: 0\r\n", []int{403}},
		"another's name as ours":          {"GET " + base + " HTTP/1.1", "Host: evil.example\r\nX-Forwarded-Host: " + at + "\r\nForwarded: host=" + at + "\r\n", []int{421}},
		"a giant header":                  {"GET " + base + " HTTP/1.1", "Host: " + at + "\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n", []int{431}},
	} {
		answer, body := raw(t, at, c.line+"\r\n"+c.header+cookie+"Connection: close\r\n\r\n")
		require.Contains(t, c.want, answer.StatusCode, name)
		require.Empty(t, answer.Header.Get("Set-Cookie"), name)
		require.Empty(t, answer.Header.Get("Content-Range"), name)
		require.NotContains(t, body, "root:", name)
		require.NotContains(t, answer.Header.Get("Location"), "//", name)
	}
	long := s.get("threads?q="+url.QueryEscape(strings.Repeat("w ", 10_000)), http.StatusOK)
	require.Less(t, len(long), 256<<10, "what is asked does not come back whole")
	s.get("diff?a="+strings.Repeat("a", 10_000)+"&b="+strings.Repeat("b", 10_000), http.StatusNotFound)
	s.get("thread/"+id+"?before="+strings.Repeat("Z", 10_000), http.StatusOK)
	s.get("events?thread=../../etc", http.StatusNotFound)
}

// The cookie of one home does not open another, not even at the same address.
func TestTheCookieOfAnotherHome(t *testing.T) {
	t.Parallel()
	one, other := newSite(t, false), newSite(t, false)
	for _, value := range []string{other.guard.cookieFor(""), one.guard.cookieFor("") + other.guard.cookieFor(""), one.guard.secret, "", "."} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, one.http.URL+one.guard.base, nil)
		require.NoError(t, err)
		r.AddCookie(&http.Cookie{Name: cookieName, Value: value})
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusForbidden, answer.StatusCode)
	}
}

// Slow or silent connections are closed and block no other; the number of live pages is limited.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	at, _ := s.serve("--port", "0")
	address, err := url.Parse(at.Address)
	require.NoError(t, err)
	var slow []net.Conn
	for i := range 200 {
		conn, err := net.Dial("tcp", address.Host)
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-%d:", i)
		require.NoError(t, err)
		slow = append(slow, conn)
	}
	answer, err := http.Get(at.Address) //nolint:noctx // a test
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	for _, conn := range slow {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err, "the server has closed it")
	}

	live := newSite(t, false)
	for range maxLives {
		answer, err := live.client.Get(live.http.URL + live.guard.base + "events")
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	live.get("events", http.StatusServiceUnavailable)
	live.get("", http.StatusOK)
}
