package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/idna"

	"github.com/united-workforce/uwf/util/fuzzing"
	"github.com/united-workforce/uwf/util/hostlist"
)

// TestSlowClients: who does not send a head in time, or nothing for long, is disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := start(t, Options{Heads: 100 * time.Millisecond, Idle: 100 * time.Millisecond}, l.Addr().String())
	at := l.Addr().String()
	for _, request := range []string{"", "GET ", "GET http://" + at + "/ HTTP/1.1\r\nA:", "GET http://" + at + "/ HTTP/1.1\r\n\r\n",
		"CONNECT " + at + " HTTP/1.1\r\n\r\n"} {
		require.NotContains(t, p.ask(t, request), "200 OK\r\nC", request) // it ends, without a reply of a server
	}
	c := p.dial(t) // a byte now and then is no head
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, err := io.WriteString(c, "A"); err != nil {
				return
			}
		}
	}()
	io.Copy(io.Discard, c) // a reset is an end, too
	c.Close()
	<-stop
}

// TestFlood: more connections than slots wait, and are served when others end.
func TestFlood(t *testing.T) {
	t.Parallel()
	port, asked := web(t)
	p := start(t, Options{Heads: time.Second}, "127.0.0.1:"+port)
	for range 2 * maxConnections { // idle ones take all slots, until the time for their heads is over
		p.dial(t)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			reply := p.ask(t, "GET http://127.0.0.1:"+port+"/ HTTP/1.1\r\n\r\n")
			if status(reply) != "200" {
				t.Error(reply)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 50, asked.Load())
}

// TestHalfClose: the end of the request is no end of the reply.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			fmt.Fprintf(c, "got %s", b)
			c.Close()
		}
	}()
	p := start(t, Options{}, l.Addr().String())
	c := p.dial(t)
	_, err = io.WriteString(c, "CONNECT "+l.Addr().String()+" HTTP/1.1\r\n\r\nearly ")
	require.NoError(t, err)
	_, err = io.WriteString(c, "late")
	require.NoError(t, err)
	require.NoError(t, c.CloseWrite())
	reply, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, established+"got early late", string(reply))
}

func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	p := start(t, Options{})
	for i := range maxRefused + 10 {
		for range 2 {
			require.Equal(t, "403", status(p.ask(t, fmt.Sprintf("CONNECT h%d.example:443 HTTP/1.1\r\n\r\n", i))))
		}
	}
	got := p.Refused()
	require.Len(t, got, maxRefused+1)
	require.Equal(t, Refusal{"h0.example", 443, 2}, got[0])
	require.Equal(t, Refusal{Count: 20}, got[maxRefused])
}

// FuzzRequest: what is passed on is one request for the host that was judged.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"GET http://a.b/ HTTP/1.1\r\nHost: c\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "POST http://a.b?x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /",
		"POST http://a.b:81/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nb\r\n0\r\nT: x\r\n\r\n", "GET http://a.b HTTP/1.0\r\nConnection: x\r\nX: y\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer fuzzing.Bounded(t)()
		r := bufio.NewReaderSize(bytes.NewReader(b), maxBuffer)
		q, err := readRequest(r)
		if err != nil || q.method == connect {
			return
		}
		var out bytes.Buffer
		if q.write(&out, r) != nil {
			return
		}
		theirs := bufio.NewReader(&out)
		got, err := readAsServer(theirs)
		if err != nil {
			return // such as a method that Go's server does not have
		}
		want := strings.TrimSuffix(q.target(), ":80")
		require.Equal(t, want, strings.TrimSuffix(got, ":80"))
		require.Zero(t, theirs.Buffered()+out.Len(), "there is more than a request")
	})
}

// readAsServer is the host of a request as Go's server reads it; its body is read.
func readAsServer(r *bufio.Reader) (host string, err error) {
	got, err := http.ReadRequest(r)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, got.Body)
	return got.Host, err
}

// TestIDNA compares the encoding of names with golang.org/x/net/idna.
func TestIDNA(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"bücher.example", "BÜCHER.example", "straße.de", "例え.テスト", "пример.рф", "한국.kr", "παράδειγμα.gr", "ä", "aä-b.c", "ñandú.es", "日本語123.jp", "δοκιμή.x",
		"मेल.भारत", "उदाहरण.परीक्षा", strings.Repeat("ü", 30) + ".de", "𐐀.x",
	} {
		want, err := idna.New(idna.MapForLookup(), idna.Transitional(false)).ToASCII(s)
		require.NoError(t, err, s)
		got, err := hostlist.ParseHost(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got.Name)
	}
}
