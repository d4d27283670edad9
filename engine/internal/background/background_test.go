package background

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCall(t *testing.T) {
	t.Parallel()
	for _, c := range []Call{
		{Home: "/h", Store: "/h/cas", Thread: "01", Lock: 3, Debug: true}, {Home: "/a b", Store: `/"`}, {},
	} {
		read, ok := CallOf(c.Args())
		require.True(t, ok)
		require.Equal(t, c, read)
	}
	for _, args := range [][]string{nil, {Argument}, {Argument, "x"}, {"thread", "{}"}, {Argument, "{}", "{}"}} {
		_, ok := CallOf(args)
		require.False(t, ok, args)
	}
}
