package wire_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
)

// FuzzClient sends random bytes to a client; FuzzServer, to a server.
func FuzzClient(f *testing.F) {
	f.Add([]byte(wire.Magic + frame('.', greeting) + frame('v', `{"hashes":["4EAEYQKFHTJ23"]}`) + frame('.', "{}")))
	f.Add([]byte(wire.Magic + frame('.', greeting) + frame('n', "4EAEYQKFHTJ23xx") + "n\x80\x00\x00\x01x" + frame('n', "x")))
	f.Add([]byte(wire.Magic + frame('k', "") + frame('.', `{"error":{"code":"conflict"}}`)))
	f.Fuzz(func(t *testing.T, says []byte) {
		c, err := wire.Connect(t.Context(), bytes.NewReader(says), io.Discard, func() error { return nil }, wire.Options{Hash: cas.XXH3})
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		for range 3 {
			for h, err := range c.Walk(t.Context(), nil, nil) {
				require.True(t, err != nil || h.Valid())
			}
			for r, err := range c.Get(t.Context(), []cas.Hash{"4EAEYQKFHTJ23"}) {
				require.True(t, err != nil || r.Hash == "4EAEYQKFHTJ23")
			}
			for s, err := range c.Threads(t.Context(), remote.Filter{}) {
				require.True(t, err != nil || s.Check() == nil)
			}
		}
	})
}

func FuzzServer(f *testing.F) {
	hello := wire.Magic + frame('q', `{"verb":"hello","versions":[1],"hash":"xxh3"}`) + frame('.', "{}")
	c := remotetest.NewChain(f, cas.XXH3, "p", 1)
	put := frame('q', `{"verb":"put"}`)
	for _, h := range c.All(c.Head()) {
		put += frame('n', string(h)+string(c.Record(h).File))
	}
	f.Add([]byte(hello + put + frame('.', "{}") + frame('q', `{"verb":"swap","swap":{"thread":"`+idA+`","head":"`+string(c.Head())+`","facts":{}}}`) + frame('.', "{}")))
	f.Add([]byte(hello + frame('q', `{"verb":"threads","filter":{"limit":1}}`) + frame('.', "{}")))
	f.Add([]byte(hello + frame('q', `{"verb":"walk","hashes":["`+string(c.Head())+`"]}`) + frame('.', "{}")))
	f.Fuzz(func(t *testing.T, says []byte) {
		r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
		_ = wire.Serve(t.Context(), bytes.NewReader(says), io.Discard, func(context.Context, wire.Hello) (remote.Remote, error) { return r, nil })
		for s, err := range r.Threads(t.Context(), remote.Filter{}) {
			require.NoError(t, err)
			require.NoError(t, remote.CheckComplete(t.Context(), r.Store(t), s.Head, ""), "no head leads to what is not there")
		}
	})
}
