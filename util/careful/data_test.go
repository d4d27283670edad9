package careful_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/careful"
)

func TestData(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	_, err = f.WriteAt([]byte("begin"), 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("end"), 1<<20)
	require.NoError(t, err)
	data, err := io.ReadAll(careful.Data(t.Context(), f))
	require.NoError(t, err)
	assert.Equal(t, "begin end", strings.Join(strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), " "))

	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = io.ReadAll(careful.Data(stopped, f))
	require.ErrorIs(t, err, context.Canceled)
}
