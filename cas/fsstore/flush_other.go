//go:build !linux

package fsstore

// keepsOrder knows no file system outside Linux.
func keepsOrder(string) (ok bool, why string) {
	return false, "on this operating system no file system is known to keep writes in order"
}
