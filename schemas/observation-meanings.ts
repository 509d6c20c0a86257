import type { Behavior, Snapshot } from './observations.ts'

type Meanings<Groups> = {
  [G in keyof Groups]: { [Member in keyof NonNullable<Groups[G]>]: string }
}

// What each member says, its unit, and how the browser SDK finds it. `npm run schemas` makes
// docs/reference/observations.md of this. A client of another kind sends what comes closest, or leaves the member out.

const realm = {
  available: 'whether it could be read at all',
  user_agent: '`navigator.userAgent` there',
  platform: '`navigator.platform` there',
  languages: '`navigator.languages` there',
  hardware_concurrency: '`navigator.hardwareConcurrency` there, processors',
  webgl_renderer: 'as `webgl.renderer`, by a context made there',
}

export const snapshotMeanings: Meanings<Snapshot> = {
  collection: {
    mode: '`full` (also where it is absent), or `minimal` where the page asked for [no fingerprint](../guide/privacy.md#minimizing)',
    withheld:
      'parts (`worker`, `iframe`, `webgl`, `canvas`, `fonts`, `audio`) that are not there, and why: `blocked` (refused or failed), `unsupported` (there is no such interface), `late` (not ready in time)',
  },
  navigator: {
    user_agent: '`navigator.userAgent`',
    app_version: '`navigator.appVersion`',
    platform: '`navigator.platform`',
    vendor: '`navigator.vendor`',
    product_sub: '`navigator.productSub`',
    language: '`navigator.language`, a BCP 47 tag',
    languages: '`navigator.languages`, the preferred one first',
    hardware_concurrency: '`navigator.hardwareConcurrency`, processors',
    device_memory: '`navigator.deviceMemory`, GiB',
    max_touch_points: '`navigator.maxTouchPoints`, fingers at once',
    pdf_viewer_enabled: '`navigator.pdfViewerEnabled`',
    cookie_enabled: '`navigator.cookieEnabled`',
    mime_types_count: '`navigator.mimeTypes.length`',
    plugins: 'the `name` of each of `navigator.plugins`',
    plugins_genuine:
      'whether plugins and MIME types have their own prototypes, and refer to each other',
    connection_rtt: '`navigator.connection.rtt`, milliseconds',
    brands: '`navigator.userAgentData.brands`',
    ua_data_platform: '`navigator.userAgentData.platform`',
    ua_data_platform_version: '`platformVersion` of `getHighEntropyValues`',
    ua_data_architecture: '`architecture` of `getHighEntropyValues`',
    ua_data_model: '`model` of `getHighEntropyValues`',
    ua_data_mobile: '`navigator.userAgentData.mobile`',
    ua_full_version:
      'the version in `fullVersionList` of `getHighEntropyValues`, of a product rather than of Chromium',
  },
  environment: {
    outer_width: '`window.outerWidth`, CSS pixels',
    outer_height: '`window.outerHeight`, CSS pixels',
    inner_width: '`window.innerWidth`, CSS pixels',
    inner_height: '`window.innerHeight`, CSS pixels',
    screen_width: '`screen.width`, CSS pixels',
    screen_height: '`screen.height`, CSS pixels',
    avail_width: '`screen.availWidth`, CSS pixels',
    avail_height: '`screen.availHeight`, CSS pixels',
    color_depth: '`screen.colorDepth`, bits',
    pixel_ratio: '`devicePixelRatio`, device pixels for a CSS pixel',
    orientation_type: '`screen.orientation.type`',
    has_focus: '`document.hasFocus()`',
    secure_context: '`isSecureContext`',
    timezone: '`timeZone` of `Intl.DateTimeFormat().resolvedOptions()`, an IANA name',
    timezone_offset_min: '`new Date().getTimezoneOffset()`, minutes; negative east of Greenwich',
    pointer_coarse: 'whether `(pointer: coarse)` matches',
    pointing_device:
      'whether `(any-pointer: none)` does not match: a mouse, touchpad, pen or touch screen is there',
    has_chrome_object: "whether `'chrome' in window`",
    notification_permission: '`Notification.permission`',
    permissions_query_state: '`state` of `navigator.permissions.query` for `notifications`',
  },
  automation: {
    webdriver: '`navigator.webdriver`',
    webdriver_iframe: '`navigator.webdriver` in an empty frame of the page',
    webdriver_worker:
      '`navigator.webdriver` in a worker; null where it could not be read, which is no evidence',
    webdriver_own_property:
      'whether `navigator` itself has a property `webdriver`; its prototype always has',
    globals:
      'names in `window` or `document` that drivers leave there, and markers of chromedriver (`cdc_..._Array`)',
    document_attributes:
      'attributes of the root element that are called `selenium`, `webdriver` or `driver`',
    cdp_runtime: 'whether `console_readers` has any: developer tools or a driver listen',
    console_readers:
      'how something was seen to read a logged error: `stack` is formatted, or a `getter` is read; as `worker.stack`',
    sequentum: 'whether `window.external` names Sequentum',
    electron: 'whether `process` or the user agent says Electron',
  },
  tamper: {
    examined: 'how many functions and primitives were looked at for the two lists that follow',
    patched_functions:
      'of a list of built-in functions and getters those whose source is not native',
    foreign_primitives:
      'of a list of primitives those that are not native, as `JSON.stringify`, `frame.JSON.stringify` in a fresh frame, and `worker.navigator.platform` in a worker',
    realm_differences:
      'values of a fresh frame or a worker that differ from the page: `frame.userAgent`, `worker.languages`',
    realm_available: 'whether a fresh frame could be opened to take primitives from',
    navigator_own_properties:
      '`Object.getOwnPropertyNames(navigator)`; empty in a browser that is left alone',
    iframe_srcdoc_proxy:
      'whether a frame outside of the document has a window, as where a tool imitates it',
    chrome_runtime_faked:
      'whether `chrome.runtime.sendMessage` or `connect` is an imitation; null without `window.chrome`',
    webgl_parameter_mismatch:
      'whether WebGL and WebGL 2 differ in renderer or limits that they share',
    timezone_mismatch:
      'whether the wall clock of `environment.timezone` differs from `getTimezoneOffset()`',
    brave: 'whether there is a `navigator.brave`',
    timer_precision_reduced:
      'whether steps of `performance.now()` are 5 milliseconds or longer; null where none was seen',
  },
  engine: {
    eval_length: 'the length of the source text of `eval`, characters',
    null_property_message: 'what the error says when a property of `null` is read',
    name: '`V8`, `SpiderMonkey` or `JavaScriptCore`, by that message',
  },
  worker: realm,
  iframe: realm,
  storage: {
    cookies: 'whether a cookie that is set is there',
    local_storage: 'whether what is stored in `localStorage` is there',
    session_storage: 'whether what is stored in `sessionStorage` is there',
    indexed_db: 'whether a database can be opened',
    service_worker: "whether `'serviceWorker' in navigator`",
    window_name: 'whether `window.name` is a text',
  },
  capabilities: {
    touch: 'whether there is `ontouchstart`, or touch points',
    webgpu: "whether `'gpu' in navigator`",
    platform_authenticator: '`PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()`',
    conditional_mediation: '`PublicKeyCredential.isConditionalMediationAvailable()`',
    media_devices: "whether `'mediaDevices' in navigator`",
    speech_synthesis: "whether `'speechSynthesis' in window`",
  },
  canvas: {
    hash: 'of the two hashes that follow',
    geometry_hash: 'of the pixels of overlapping circles, drawn on a canvas of 122 by 110',
    text_hash: 'of the pixels of two lines of text with an emoji, drawn on a canvas of 240 by 60',
    winding: 'whether the rule `evenodd` leaves a hole in a path',
    noise_detected: 'whether a filled square or an empty canvas reads back as something else',
    offscreen_consistent: 'whether the same circles on an `OffscreenCanvas` have the same pixels',
  },
  webgl: {
    vendor: '`UNMASKED_VENDOR_WEBGL`, or `VENDOR`',
    renderer: '`UNMASKED_RENDERER_WEBGL`, or `RENDERER`',
    version: '`VERSION`',
    shading_language_version: '`SHADING_LANGUAGE_VERSION`',
    parameters_hash: 'of the limits and capabilities that `getParameter` tells, with their names',
    extensions_hash: 'of `getSupportedExtensions()`, in its order',
    extension_parameters_hash: 'of the same limits of every extension',
    shader_precision_hash: 'of range and precision of each kind of number in both shaders',
  },
  webgpu: {
    available: 'whether `navigator.gpu.requestAdapter()` gives an adapter',
    adapter_vendor: '`vendor` of the adapter',
    adapter_architecture: '`architecture` of the adapter',
    fallback_adapter: '`isFallbackAdapter`: it is computed by software',
    features_hash: 'of the features of the adapter, sorted',
    limits_hash: 'of the limits of the adapter with their names, sorted',
  },
  audio: {
    hash: 'of the samples that an `OfflineAudioContext` makes of a triangle wave through a compressor; nothing is played',
    sample_rate: 'of that sound, hertz',
    channel_count: 'of that sound, channels',
    voice_count: 'how many voices `speechSynthesis.getVoices()` has',
    local_voice_count: 'those of them that need no network (`localService`)',
    default_voice_lang: 'the language of the default voice, a BCP 47 tag',
    noise_detected: 'whether two ways to read the samples give different ones',
  },
  fonts: {
    detected_count: 'how many of the tested fonts are there',
    tested_count: 'how many were tested',
    detected: 'their names: a text has another width with the font than with a generic one',
    enumeration_hash: 'of these names',
    metrics_hash: 'of width, ascent and descent of a text in the generic fonts',
    preferences_hash: 'of the fonts of the system, as `caption` and `menu`, with size and weight',
    emoji_hash: 'of the pixels of two emoji',
  },
  media: {
    device_count: 'how many devices `navigator.mediaDevices.enumerateDevices()` lists',
    counts_by_kind: 'how many of each `kind`, such as `audioinput`',
    blank_label_count: 'how many have an empty label, as all have without a permission',
    topology_hash: 'of kind, and whether there is a group, of each in its order',
  },
  proofs: {
    challenge:
      '`challenge` of the open answer, as it is: what SDKs before 0.2 sent in place of `answer_mac`',
    timing_nonce: '`timingNonce` of the open answer, as it is: as above',
    canvas_challenge_hash:
      'of the pixels of `canvasChallenge`, [drawn](collect-protocol.md#7-challenges) as it says',
    engine_answers: 'to `engineQuestions` of the open answer, in their order',
    answer_mac:
      'of these answers, [keyed](collect-protocol.md#7-challenges) by `challenge` and `timingNonce`',
  },
  native: {
    device_model: 'the model as the system names it, such as `iPhone15,2`',
    os_name: 'of the operating system, such as `iOS`',
    os_version: 'of the operating system',
    architecture: 'of the processor, such as `arm64`',
    install_id: 'a random id that the app made when it was installed',
    bundle_id: 'bundle identifier or package name of the app',
    app_version: 'the version that people see',
    app_build: 'the number of the build',
    carrier_name: 'of the mobile network operator',
    country_iso: 'of the mobile network operator, two letters',
    install_time_epoch_ms: 'when the app was installed, epoch milliseconds',
    provisioning_team: 'id of the team that signed the app, of Apple only',
    mcc: 'country code of the mobile network, three digits',
    mnc: 'code of the mobile network within the country',
    phone_type: 'kind of the telephone, such as `gsm`',
    network_type: 'kind of the connection, such as `wifi`',
    radio_access: 'radio technologies in use, such as `lte`',
    jailbreak_or_root: 'whether the system gives more rights than its maker does',
    hooks: 'whether code in the process was replaced, as by Frida',
    debugger: 'whether a debugger is attached',
    simulator_or_emulator: 'whether there is no device',
    code_signing_invalid: 'whether the app is not as it was signed',
    integrity: 'how it came to these flags, in groups of their own (below)',
    motion: 'a device at rest, by its sensors (below)',
  },
}

/** What each group of behaviour says of its events. */
export const timing = {
  untrusted: 'events that a script made (`isTrusted` is false)',
  duration_ms: 'from the first event to the last one, milliseconds',
  interval_mean: 'mean of the time from one event to the next, milliseconds',
  interval_std: 'standard deviation of that time, of the sample, milliseconds',
}

const channel = (events: string) => ({ events, ...timing })

export const behaviorMeanings: Meanings<Behavior> = {
  mouse: {
    ...channel('`pointermove`, and `click` by a pointer; no touches'),
    moves: '`pointermove` events',
    clicks: '`click` events of a pointer: not those by a key, a label or assistive technology',
    activations:
      'genuine clicks, whatever made them: a pointer, a finger, a key, a label or a screen reader',
    clicks_without_move:
      'genuine clicks more than 3 CSS pixels from the last known position, or without one',
    clicks_exact_center:
      'clicks at most 0.75 CSS pixels from the middle of what was clicked, both ways',
    screen_equals_client:
      'genuine moves whose screen position is that in the page, though the window has an offset or a bar',
    frameless:
      'genuine moves whose screen position leaves no room for the bars of the window, though it has some',
    coalesced: 'genuine moves that the browser made of several (`getCoalescedEvents`)',
    single: 'genuine moves that the browser made of one, where it says so',
    off_clock:
      'genuine moves, presses and releases whose `timeStamp` is no whole number of milliseconds after that of the one before',
    presses:
      'genuine presses of a mouse button: `mousedown` after `pointerdown`, but not by assistive technology',
    instant_presses: 'those of them that were released within 8 milliseconds',
    pressureless:
      'genuine presses and moves with a button down, whose `pressure` is 0; only of a mouse',
    jumps:
      'presses after one genuine move over more than 200 CSS pixels, within the page and with focus; moves that came late or made of several do not count',
    straightness:
      'path over distance, 1 for a straight line; mean over movements. One ends with a click or 120 milliseconds of rest, and counts from 4 points and 30 CSS pixels on',
    speed_std: 'standard deviation of the speed between two moves, CSS pixels for a millisecond',
  },
  keyboard: {
    ...channel('`keydown`, without repeats'),
    keys: 'keys that were pressed',
    hold_mean: 'mean of the time that a key is down, milliseconds',
    hold_std: 'standard deviation of that time, milliseconds',
    rollovers: 'keys of a character that were pressed while another such key was down',
    corrections: 'Backspace and Delete',
    shiftless:
      'genuine capitals without Shift or Caps Lock next to a small letter, and `@` of the key `Digit2` without a modifier',
    malformed:
      'genuine keys whose `keyCode` is 0 or whose `location` is 0, though their `code` says more',
    unkeyed: 'genuine `keypress` events with no `keydown` since the one before',
    off_clock:
      'genuine presses and releases of keys whose `timeStamp` is no whole number of milliseconds after that of the one before',
    abutting:
      'keys of a character that are pressed within 8 milliseconds after the release of the one before, while no key is down',
    hasty: 'genuine keys of a character within 60 milliseconds after the release of a mouse button',
    letters:
      'genuine keys of a to z with a number of their own, unlike those of a keyboard on the screen',
  },
  touch: {
    ...channel('`touchstart`, `touchmove`, `touchend`'),
    touches: '`touchstart` events',
    radius_std: 'standard deviation of `radiusX` of the contacts, CSS pixels',
    instant: 'genuine contacts that ended within 8 milliseconds',
    plain:
      'genuine contacts that begin with both radii and the force at 1, whatever the page is zoomed to',
    displaced:
      'genuine contacts that begin 4 or more CSS pixels off their place in the page, though the window is as wide as the screen',
  },
  scroll: {
    ...channel('`wheel` and `scroll`'),
    wheel: '`wheel` events',
    distance: 'up and down together, CSS pixels',
    uneven_wheel:
      'genuine turns of the wheel by whole notches whose distance for a notch is not that of the turn before',
    uncaused:
      'times that scrolling began with no input or change of focus or size in the second before',
  },
  form: {
    ...channel('`focusin`, `input` of text fields, `change`, `submit`'),
    focuses: 'fields that got the focus',
    changes: '`change` events',
    submits: '`submit` events',
    silent_changes:
      'inputs of a text field with no key, paste, drop or composition in the second before; nor by a menu or autofill',
    inserted: 'those of them that are genuine and insert two or more characters at once',
    autofills: "inputs by the browser's own autofill",
    uncaused_focuses:
      'fields that got the focus with no genuine input in the second before, nor a return to the window',
    unfocused_inputs:
      "inputs of a text field that has not the focus, without the browser's own autofill",
    time_to_submit_ms:
      'from the first focus in the form, or else the start of the document, to its last `submit`, milliseconds',
  },
  clipboard: {
    ...channel('`copy`, `cut` and `paste`'),
    copies: '`copy` and `cut` events',
    pastes: '`paste` events',
  },
}
