// The devices that claims are for: @numalign/claims has them, for `numalign plan` too.
export * from '@numalign/claims';
