package proxy

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSlowClients checks that a client that does not send a head in time, or nothing for long, is
// disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := start(t, Options{Heads: 100 * time.Millisecond, Idle: 100 * time.Millisecond}, l.Addr().String())
	at := l.Addr().String()
	for _, request := range []string{"", "GET ", "GET http://" + at + "/ HTTP/1.1\r\nA:", "GET http://" + at + "/ HTTP/1.1\r\n\r\n",
		"CONNECT " + at + " HTTP/1.1\r\n\r\n"} {
		require.NotContains(t, p.ask(t, request), "200 OK\r\nC", request) // it ends without a server's reply
	}
	c := p.dial(t) // an occasional byte is not enough
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, err := io.WriteString(c, "A"); err != nil {
				return
			}
		}
	}()
	io.Copy(io.Discard, c) // a reset is acceptable as well
	c.Close()
	<-stop
}

// TestFlood checks that connections beyond the limit wait, and are served when others end.
func TestFlood(t *testing.T) {
	t.Parallel()
	port, asked := web(t)
	p := start(t, Options{Heads: time.Second}, "127.0.0.1:"+port)
	for range 2 * maxConnections { // idle connections take all slots until their timeout
		p.dial(t)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			reply := p.ask(t, "GET http://127.0.0.1:"+port+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if status(reply) != "200" {
				t.Error(reply)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 50, asked.Load())
}

// TestHalfClose checks that the end of a request does not end the reply.
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
