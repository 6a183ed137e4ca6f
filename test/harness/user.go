package harness

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// OtherUser returns the user for a program that refuses to run as root: postgres or nobody; nil if this process does
// not run as root. The folder is given to that user.
func OtherUser(folder string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	gid, other := strconv.ParseUint(account.Gid, 10, 32)
	if err := errors.Join(err, other); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(folder, int(uid), int(gid))
}
