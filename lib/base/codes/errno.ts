// Errno: the kernel's names of its error numbers, which are the same on x64 and arm64.
import { getSystemErrorName } from 'node:util';

// asm-generic/errno.h, where libuv has no name.
const KERNEL_NAMES = `
  8 ENOEXEC, 10 ECHILD, 15 ENOTBLK, 33 EDOM, 35 EDEADLK, 37 ENOLCK, 42 ENOMSG, 43 EIDRM, 44 ECHRNG,
  45 EL2NSYNC, 46 EL3HLT, 47 EL3RST, 48 ELNRNG, 50 ENOCSI, 51 EL2HLT, 52 EBADE, 53 EBADR, 54 EXFULL,
  55 ENOANO, 56 EBADRQC, 57 EBADSLT, 59 EBFONT, 60 ENOSTR, 61 ENODATA, 62 ETIME, 63 ENOSR, 64 ENONET,
  65 ENOPKG, 66 EREMOTE, 67 ENOLINK, 68 EADV, 69 ESRMNT, 70 ECOMM, 72 EMULTIHOP, 73 EDOTDOT, 74 EBADMSG,
  76 ENOTUNIQ, 77 EBADFD, 78 EREMCHG, 79 ELIBACC, 80 ELIBBAD, 81 ELIBSCN, 82 ELIBMAX, 83 ELIBEXEC,
  85 ERESTART, 86 ESTRPIPE, 87 EUSERS, 96 EPFNOSUPPORT, 102 ENETRESET, 109 ETOOMANYREFS,
  115 EINPROGRESS, 116 ESTALE, 117 EUCLEAN, 118 ENOTNAM, 119 ENAVAIL, 120 EISNAM, 121 EREMOTEIO,
  122 EDQUOT, 123 ENOMEDIUM, 124 EMEDIUMTYPE, 126 ENOKEY, 127 EKEYEXPIRED, 128 EKEYREVOKED,
  129 EKEYREJECTED, 130 EOWNERDEAD, 131 ENOTRECOVERABLE, 132 ERFKILL, 133 EHWPOISON`;

/** The name of an error number, such as `ESTALE` for 116. */
export function errnoName(errno: number): string {
  const name = getSystemErrorName(-errno);
  if (name.startsWith('E')) return name;
  return new RegExp(`\\b${errno} (\\w+)`).exec(KERNEL_NAMES)?.[1] ?? name;
}

/** The name of a Node error's number, else its code: `Unknown system error -116` becomes `ESTALE`. */
export function errorName({ code, errno }: NodeJS.ErrnoException): string | undefined {
  return code?.startsWith('Unknown') && errno !== undefined ? errnoName(-errno) : code;
}

/** The message of a Node error, with the name of its number. */
export function errorText(error: NodeJS.ErrnoException): string {
  return error.message.replace(/(Unknown system error -\d+: )?Unknown system error -\d+/g, () =>
    String(errorName(error)),
  );
}
