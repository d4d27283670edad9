package threadid

// near is in how many characters two ids may differ that damage has made of one. Of
// two threads nearly all random ones do.
const near = 2

// Near reports whether one of two ids may be the other, damaged. No id is near itself.
func Near(a, b string) bool {
	if len(a) != Len || len(b) != Len {
		return false
	}
	differ := 0
	for i := range Len {
		if a[i] != b[i] {
			differ++
		}
	}
	return 0 < differ && differ <= near
}
