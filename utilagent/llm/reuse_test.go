package llm

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Requests reuse the connection, because setting one up costs more than anything else in a turn.
func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"whole":  says("ok"),
		"stream": slowly("data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\n", "data: [DONE]\n\n"),
		"stream with an end that comes late": slowly("data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n",
			"data: [DONE]\n\n", ": bye\n\n"),
		"stream without an end": slowly("data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int32
			e := &endpoint{handlers: []http.HandlerFunc{h}}
			e.Server = httptest.NewUnstartedServer(http.HandlerFunc(e.answer))
			e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					connections.Add(1)
				}
			}
			e.Start()
			t.Cleanup(e.Close)
			c := New(e.config(), Options{})
			const asked = 20
			for range asked {
				require.Equal(t, "ok", mustAsk(t, c).Message.Content)
			}
			require.Less(t, connections.Load(), int32(asked), "on a busy machine the end of a reply may be late, but not of all")
		})
	}
}

// The client does not wait for an endpoint that has sent everything but does not close.
func TestEndThatDoesNotCome(t *testing.T) {
	t.Parallel()
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\ndata: [DONE]\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client disconnects
	})
	require.Equal(t, "ok", mustAsk(t, e.client(&waits{})).Message.Content)
}

// slowly writes pieces, each in a separate packet.
func slowly(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			w.(http.Flusher).Flush()
			select { // so that the next piece is another packet
			case <-r.Context().Done():
			case <-time.After(2 * time.Millisecond):
			}
		}
	}
}
