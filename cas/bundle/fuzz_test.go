package bundle_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// No file makes the reader panic. For a file accepted as complete, with any digest, writing it again gives
// the same bytes: each content has exactly one bundle.
func FuzzOpen(f *testing.F) {
	w := sample(f)
	f.Add(w.export(idB))
	if _, err := redact.Node(context.Background(), w.store, w.index, idB, w.lastTurn(idB), redact.Options{Now: clock}); err != nil {
		f.Fatal(err)
	}
	w.sealed(idB)
	data := w.export()
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("uwf bundle 1\n"))
	f.Add([]byte("uwf bundle 99999999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Bounded(t)()
		ctx := context.Background()
		_, _ = verify(data)
		data = redigest(data)
		file, err := bundle.Receive(ctx, bytes.NewReader(data), &bytesSpool{})
		if err != nil {
			return
		}
		if _, err := file.Check(ctx); err != nil {
			return
		}
		var out bytes.Buffer
		_, err = bundle.Write(ctx, &out, cas.Reader(file), file.Manifest, nil)
		require.NoError(t, err)
		require.Equal(t, data, out.Bytes())
	})
}

// redigest corrects the digest of a bundle whose frames are valid.
func redigest(data []byte) []byte {
	parts, ok := frames(data)
	if !ok {
		return data
	}
	return parts.bytes()
}
