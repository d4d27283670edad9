package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a word that stands for several threads it is said what to type for each.
func TestToldApart(t *testing.T) {
	t.Parallel()
	a, b, c := "01M84K9HSSXCM1KW451EH305M6", "01M84K9HSTF5209NF3SE7ZKT45B", "01M84NF9GQNQD1DBSFECTEH5M6"
	require.Equal(t, []string{"01M84K9HSS", "01M84K9HST", "01M84N"}, toldApart([]string{a, b, c}, "01M84"))
	require.Equal(t, []string{"05M6", "H5M6"}, toldApart([]string{a, c}, "5M6"))
	require.Equal(t, []string{a, a + "X"}[:1], toldApart([]string{a}, a[:25]))
}
