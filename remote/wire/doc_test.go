package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
)

// TestDocumentedSession checks the session in docs/remote-protocol.md.
func TestDocumentedSession(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/remote-protocol.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```wire\n")
	require.True(t, ok)
	session, _, _ := strings.Cut(rest, "```")
	client, server := wire.Magic, wire.Magic
	for line := range strings.Lines(session) {
		text := strings.TrimSuffix(line[2:], "\n")
		bytes, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		stderr := string(bytes)
		if err != nil {
			stderr = frame(text[0], text[2:])
		} else {
			require.EqualValues(t, len(stderr)-5, binary.BigEndian.Uint32(bytes[1:]))
		}
		if line[0] == '>' {
			client += stderr
		} else {
			server += stderr
		}
	}
	now := func() time.Time { return time.UnixMilli(1_780_000_000_000) }
	var out bytes.Buffer
	err = wire.Serve(t.Context(), strings.NewReader(client), &out, func(context.Context, wire.Hello) (remote.Remote, error) {
		return remotetest.NewDirectory(t, cas.XXH3, now), nil
	})
	require.NoError(t, err)
	require.Equal(t, server, out.String())
}
